/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/op_xprof.h"

#include "analysis/datatable.h"

static void add_html(struct buf *b, str text)
{
    for (size_t i = 0; i < text.n; i++)
        switch (text.p[i]) {
        case '&':
            buf_add_str(b, S("&amp;"));
            break;
        case '<':
            buf_add_str(b, S("&lt;"));
            break;
        case '>':
            buf_add_str(b, S("&gt;"));
            break;
        case '\'':
            buf_add_str(b, S("&#39;"));
            break;
        case '"':
            buf_add_str(b, S("&quot;"));
            break;
        default:
            buf_add_char(b, text.p[i]);
        }
}

str op_xprof_source(const struct op_metrics *m, struct buf *b)
{
    buf_clear(b);
    if (m->source_file.n == 0)
        return (str){0};
    buf_add_str(b, S("<div class='source-info-cell' title='"));
    add_html(b, m->source_stack);
    buf_add_str(b, S("'>"));
    add_html(b, m->source_file);
    buf_addf(b, ":%lld</div>", (long long)m->source_line);
    return buf_str(b);
}

str op_xprof_name(const struct op_metrics *m)
{
    const str text = m->long_name.n > 0 ? m->long_name : m->name;
    const ptrdiff_t equals = str_find(text, S(" = "));
    const str name = equals < 0 ? text : str_sub(text, 0, (size_t)equals);
    return str_starts(name, S("%")) ? str_sub(name, 1, name.n) : name;
}

str op_xprof_place(const struct op_metrics *m, struct arena *a)
{
    str out = {0}, head, rest = m->source_stack;
    if (rest.n == 0)
        return m->source_file.n == 0 ? out
                                     : arena_printf(a, "%.*s:%lld", STR_ARG(m->source_file),
                                                    (long long)m->source_line);
    while (str_cut(rest, '\n', &head, &rest))
        if (head.n > 0)
            out = arena_printf(a, "%.*s%.*s -> ", STR_ARG(out), STR_ARG(head));
    return out;
}

str op_xprof_core(const struct op_metrics *m)
{
    return m->core == OP_CORE_TENSOR   ? S("TensorCore")
           : m->core == OP_CORE_SPARSE ? S("SparseCore")
                                       : (str){0};
}

void op_xprof_diagnostics(struct json *j, bool no_steps)
{
    static const struct datatable_column columns[] = {
        {"severity", "Severity", "string", NULL},
        {"message", "Message", "string", NULL},
    };
    datatable_begin(j, columns, sizeof columns / sizeof *columns);
    if (no_steps) {
        datatable_row(j);
        datatable_text(j, S("WARNING"));
        datatable_text(j, S("No step marker: step times are unknown. Mark the steps, or profile "
                            "longer than a step."));
        datatable_row_end(j);
    }
    datatable_properties(j);
    datatable_end(j);
}
