/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/main_loop.h"

int main(int argc, char **argv)
{
    return main_loop(argc, argv);
}
