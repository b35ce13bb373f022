# SPDX-License-Identifier: Apache-2.0
"""AWS signature 4 written from its specification, and an S3 server for tests that checks it and misbehaves if asked."""
import datetime
import hashlib
import hmac
import http.server
import threading
import urllib.error
import urllib.parse
import urllib.request
import xml.sax.saxutils

KEY, SECRET, REGION = "fakekeyid0001", "fake/secret+0001", "eu-north-1"


def quote(text, safe=""):
    return urllib.parse.quote(text, safe=safe + "-._~")


def signature(secret, method, path, query, headers, signed, payload, stamp, region):
    """path and query as they stand in the request line; headers by lower-case name."""
    pairs = sorted(tuple(p.split("=", 1)) if "=" in p else (p, "") for p in query.split("&") if p)
    canonical = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in pairs),
                           *[f"{n}:{' '.join(headers[n].split())}" for n in signed], "", ";".join(signed), payload])
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (stamp[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def request(endpoint, method, path, body=b"", key=KEY, secret=SECRET, region=REGION):
    """One signed request, for servers that are not fake."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    payload = hashlib.sha256(body).hexdigest()
    headers = {"host": urllib.parse.urlsplit(endpoint).netloc, "x-amz-content-sha256": payload, "x-amz-date": stamp}
    signed = sorted(headers)
    path = quote(path, "/")
    mac = signature(secret, method, path, "", headers, signed, payload, stamp, region)
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={key}/{stamp[:8]}/{region}/s3/aws4_request, "
                                f"SignedHeaders={';'.join(signed)}, Signature={mac}")
    ask = urllib.request.Request(endpoint + path, data=body or None, headers=headers, method=method)
    with urllib.request.urlopen(ask, timeout=60) as reply:
        return reply.read()


class FakeS3(http.server.ThreadingHTTPServer):
    """objects: {"bucket": {"key": bytes}}. hook(handler, op, key): True when it has answered by itself.
    log: [(method, path and query, range or None)]."""
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, session_token=None, anonymous=False):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.modified, self.etags = {}, {}, {}
        self.log, self.lock = [], threading.Lock()
        self.session_token, self.anonymous = session_token, anonymous
        self.hook = lambda handler, op, key: False
        self.page = 1000
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def put(self, bucket, key, body, modified=1769903999):
        self.objects.setdefault(bucket, {})[key] = body
        self.modified[bucket, key] = modified
        self.etags[bucket, key] = hashlib.md5(body).hexdigest()

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()

    def handle_error(self, request, client_address):
        pass  # the client broke off: tests see what it says


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        names = {n.lower() for n, _ in headers}
        for name, value in headers:
            self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code, message="a message", more="", headers=()):
        self.answer(status, f"<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{message}</Message>{more}"
                            f"<AWSAccessKeyId>{KEY}</AWSAccessKeyId></Error>".encode(), headers)

    def refuse_signature(self):
        """None when the request is signed as it must be, else (status, code)."""
        said = self.headers.get("Authorization")
        if said is None:
            return None if self.server.anonymous else (403, "AccessDenied")
        if not said.startswith("AWS4-HMAC-SHA256 "):
            return 400, "InvalidArgument"
        parts = dict(p.strip().split("=", 1) for p in said.removeprefix("AWS4-HMAC-SHA256 ").split(","))
        key, day, region, *rest = parts["Credential"].split("/")
        stamp = self.headers["X-Amz-Date"]
        signed = parts["SignedHeaders"].split(";")
        headers = {n.lower(): v for n, v in self.headers.items()}
        must = {"host"} | {n for n in headers if n.startswith("x-amz-")}
        if key != KEY:
            return 403, "InvalidAccessKeyId"
        if region != REGION:
            return 400, "AuthorizationHeaderMalformed"
        if rest != ["s3", "aws4_request"] or stamp[:8] != day or not must <= set(signed) or signed != sorted(signed):
            return 403, "SignatureDoesNotMatch"
        if self.server.session_token != self.headers.get("X-Amz-Security-Token"):
            return 403, "InvalidToken"
        path, _, query = self.path.partition("?")
        mac = signature(SECRET, self.command, path, query, headers, signed, headers["x-amz-content-sha256"], stamp,
                        REGION)
        return None if hmac.compare_digest(mac, parts["Signature"]) else (403, "SignatureDoesNotMatch")

    def handle_any(self):
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path).lstrip("/").partition("/")
        op = "list" if self.command == "GET" and "list-type=2" in query else self.command.lower()
        with self.server.lock:
            self.server.log.append((self.command, self.path, self.headers.get("Range")))
        refused = self.refuse_signature()
        if refused:
            region = f"<Region>{REGION}</Region>" if refused[1] == "AuthorizationHeaderMalformed" else ""
            return self.error(*refused, more=region)
        if self.server.hook(self, op, key):
            return None
        if bucket not in self.server.objects:
            return self.error(404, "NoSuchBucket")
        if op == "list":
            return self.list(bucket, urllib.parse.parse_qs(query, keep_blank_values=True))
        if key not in self.server.objects[bucket]:
            return self.error(404, "NoSuchKey")
        return self.object(bucket, key)

    do_GET = do_HEAD = handle_any

    def object_headers(self, bucket, key):
        when = datetime.datetime.fromtimestamp(self.server.modified[bucket, key], datetime.UTC)
        return [("ETag", f'"{self.server.etags[bucket, key]}"'),
                ("Last-Modified", when.strftime("%a, %d %b %Y %H:%M:%S GMT"))]

    def object(self, bucket, key):
        body, headers = self.server.objects[bucket][key], self.object_headers(bucket, key)
        match = self.headers.get("If-Match")
        if match is not None and match != headers[0][1]:
            return self.error(412, "PreconditionFailed")
        span = self.headers.get("Range")
        if self.command == "HEAD" or span is None:
            return self.answer(200, body, [*headers, ("Content-Length", str(len(body)))])
        start, end = (int(x) for x in span.removeprefix("bytes=").split("-"))
        if start >= len(body):
            return self.error(416, "InvalidRange")
        end = min(end, len(body) - 1)
        return self.answer(206, body[start:end + 1],
                           [*headers, ("Content-Range", f"bytes {start}-{end}/{len(body)}")])

    def list(self, bucket, query):
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        keys = sorted(k for k in self.server.objects[bucket] if k.startswith(prefix) and k > after)
        cut, keys = len(keys) > self.server.page, keys[:self.server.page]
        encoded = query.get("encoding-type") == ["url"]
        rows = []
        for key in keys:
            when = datetime.datetime.fromtimestamp(self.server.modified[bucket, key], datetime.UTC)
            name = quote(key, "/") if encoded else xml.sax.saxutils.escape(key)
            rows.append(f"<Contents><Key>{name}</Key><LastModified>{when.strftime('%Y-%m-%dT%H:%M:%S.000Z')}"
                        f"</LastModified><ETag>&quot;{self.server.etags[bucket, key]}&quot;</ETag>"
                        f"<Size>{len(self.server.objects[bucket][key])}</Size></Contents>")
        more = f"<NextContinuationToken>{xml.sax.saxutils.escape(keys[-1])}</NextContinuationToken>" if cut else ""
        self.answer(200, ('<?xml version="1.0" encoding="UTF-8"?>\n'
                          '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
                          f"<Name>{bucket}</Name><IsTruncated>{str(cut).lower()}</IsTruncated>{more}"
                          f"{'<EncodingType>url</EncodingType>' if encoded else ''}{''.join(rows)}"
                          "</ListBucketResult>").encode(), [("Content-Type", "application/xml")])
