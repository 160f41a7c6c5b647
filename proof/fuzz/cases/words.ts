/** A password in settings; nothing may say it. */
export const SECRET = "s3cr3t-that-nobody-sees";

/** Words of the syntax that each target reads: what is worth putting into an input. */
export const WORDS = {
  http1: [
    "GET / HTTP/1.1\r\n", "POST /synchttp/x HTTP/1.1\r\nHost: a\r\n", "Host: a\r\n", "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n", "Connection: close, x-a\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    "Expect: 100-continue\r\n", "X-Forwarded-For: 1.2.3.4\r\n", "Destination: http://a/sync/b\r\n",
    "HTTP/1.1 200 OK\r\n", "HTTP/1.0", "http://a/", "\r\n\r\n", "\r\n", "\n", "\r", ":", " ", "\t", "\0", "%2e%2e/",
    "/../", "//", "%00", "?", "#",
  ],
  chunks: ["0\r\n\r\n", "1\r\na\r\n", ";a=b", "\r\n", "\n", "\r", "fffffffffffff", "X-T: u\r\n", "0x", " ", "\0"],
  fieldBlock: [
    "\x82\x84\x87\x41\x01a", "\x83", "\x44\x07/sync/x", "\x00\x07:method\x03FOO", "\x00\x05:path\x02/a",
    "\x00\x0a:authority\x01a", "\x00\x09:protocol\x09websocket", "\x00\x0econtent-length\x015",
    "\x00\x11transfer-encoding\x07chunked", "\x00\x02te\x08trailers", "\x00\x04host\x01a", "\x00\x06cookie\x03a=b",
    "\x00\x03x-a\x05b\r\nc:", "\x40", "\x3f\xe1\x1f", "\x20", "\xbe", "\x7f\x00", "\x00\x03x_a\x01b",
    "\x00\x0fx-forwarded-for\x01b",
  ],
  frames: [
    "\0\0\0\x04\0\0\0\0\0", "\0\0\x01\0\x08\0\0\0\x01", "\0\0\x04\0\x09\0\0\0\x01\x02", "\0\x40\0\x01\x04",
    "\0\x40\x01", "\0\0\x05\x09\x04\0\0\0\x03", "\x80",
  ],
  proxyHeader: [
    "PROXY ", "TCP4 ", "TCP6 ", "UNKNOWN", "192.0.2.1 198.51.100.2 ", "2001:db8::7 ::ffff:192.0.2.1 ",
    "55555 443\r\n", "\r\n", "\r\n\r\n\0\r\nQUIT\n", "\x20\0\0\0", "\x21\x11\0\x0c", "\x21\x11\0\x13",
    "\x21\x21\0\x24", "\x21\x31\0\xd8", "\0\0\0\0\0\0\0\0\0\0\xff\xff", "\x03\0\x04", "\x04\0\0",
  ],
  clientHello: [
    "\x16\x03\x01\0\x80", "\x16\x03\x03\0\0", "\x01\0\0\x7c\x03\x03", "\0\x02\x13\x01\x01\0",
    "\0\0\0\x10\0\x0e\0\0\x0bexample.org", "\0\x10\0\x0d\0\x0b\x0aacme-tls/1", "\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1",
    "\xff\xff",
  ],
  target: [
    "/synchttp", "/synchttp/", "/../", "/./", "//", "%2e%2e", "%2f", "%00", "%", "?", "#", "%25", "/..", "\xe4",
    "..;/",
  ],
  host: ["[::1]", ":80", ".", "..", "@", "%", "xn--", "_", "-", "65536", "[", "]", "127.0.0.1"],
  config: [
    '"version": 1', '"listeners": []', '"protocol": "https"', '"tls": {}',
    '"action": {"type": "proxy", "upstream": "web"}', '"type": "staticFiles"', '"match": "exact"', "null", "{}", "[]",
    '"\\u0000"', "1e999", "-1", "0.5", '"_"', '"__proto__": {}', '"constructor": {}', '"path": "/../"', "true",
  ],
  python: [
    `SECRET_KEY = "${SECRET}"\n`, "DATABASES = {\n    'default': {}\n}\n", "SITE_ROOT = '/sync/'\n",
    "SERVE_STATIC = True\n", "FILE_SERVER_ROOT = 'x'", "CSRF_TRUSTED_ORIGINS = ['a', 'b']\n",
    "CSRF_TRUSTED_ORIGINS += ['c']\n", "MEDIA_URL", "if True:\n    ", "else:\n", "try:\n    ", "from x import *\n",
    "import SITE_ROOT\n", "def f():\n    global SITE_ROOT\n", "class A:\n    ", "# -*- coding: latin-1 -*-\n", '"""',
    "'''", "'", '"', "r'\\'", "f'{x}'", "\\\n", "\r\n", "\r", "\t", "\f", "\ufeff", "(", ")", "[", "]", "{", "}", ";",
    "=", ":=", "==", ",", ":", "#", "globals()['SITE_ROOT'] = 1\n", "exec('x')\n", "del SITE_ROOT\n",
    "for SITE_ROOT in x: pass\n", "with a as SITE_ROOT: pass\n", "lambda: 0", "\0",
  ],
  ini: [
    "[General]\n", "[general]\n", "[fileserver]\n", "[DEFAULT]\n", "SERVICE_URL = http://a/sync\n",
    "service_url = x\n", "host = 0.0.0.0\n", "port=8082\n", "Port: 1\n", "# port = 1\n", "; host\n", "  continued\n",
    "%(host)s", "[", "]", "=", ":", "\r\n", "\r", "\t", "\ufeff", "\0", `password = ${SECRET}\n`,
  ],
  env: [
    "HOST=a\n", "HOST=", "TLS=", "export ", "A=", "A: b\n", "HOST\n", "# c\n", " #", ";", "'", '"', "\\", "\\\n", "$A", "=",
    ":", "\r\n", "\r", "\t", " ", "\ufeff", "\u00a0", "\0", `A_PASSWORD=${SECRET}\n`,
  ],
};
