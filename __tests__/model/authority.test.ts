import {
  bracketed,
  defaultPort,
  endpoint,
  isLoopback,
  unbracketed,
  upstreamAddress,
  urlAuthority,
} from "../../src/model/net/authority.js";

test.each([
  ["app.example", "app.example"],
  ["192.0.2.1", "192.0.2.1"],
  ["2001:db8::1", "[2001:db8::1]"],
  ["::1", "[::1]"],
])("%s is written %s in front of a port, and read back", (host, written) => {
  expect(bracketed(host)).toBe(written);
  expect(unbracketed(written)).toBe(host);
  expect(unbracketed(host)).toBe(host);
  expect(endpoint({ host, port: 80 })).toBe(`${written}:80`);
});

test.each([
  ["http", 80, "app.example"],
  ["http", "80", "app.example"],
  ["http", 443, "app.example:443"],
  ["https", 443, "app.example"],
  ["https", 80, "app.example:80"],
  ["https", 8443, "app.example:8443"],
  ["https", "${aws.port}", "app.example:${aws.port}"],
] as const)("the port of a URL of %s with port %s", (scheme, port, written) => {
  expect(urlAuthority(scheme, "app.example", port)).toBe(written);
  expect(defaultPort(scheme)).toBe(scheme === "http" ? 80 : 443);
});

test.each([
  ["http://127.0.0.1:8000", "127.0.0.1", 8000],
  ["http://127.0.0.1:8000/", "127.0.0.1", 8000],
  ["http://localhost", "localhost", 80],
  ["http://App.Example:80", "app.example", 80],
  ["http://[::1]:8080", "::1", 8080],
  ["http://[2001:DB8:0::1]", "2001:db8::1", 80],
  ["https://app.example", "app.example", 443],
  ["https://[::1]:8443/", "::1", 8443],
] as const)("the upstream %s", (url, host, port) => {
  expect(upstreamAddress(url)).toEqual({ host, port });
});

test("an upstream on a Unix socket", () => {
  expect(upstreamAddress("unix:/run/app/web.sock")).toEqual({ path: "/run/app/web.sock" });
});

test.each([
  ["localhost", true],
  ["127.0.0.1", true],
  ["127.255.0.9", true],
  ["::1", true],
  ["0:0:0:0:0:ffff:7f00:1", true],
  ["::ffff:192.0.2.1", false],
  ["0.0.0.0", false],
  ["128.0.0.1", false],
  ["127.", false],
  ["10.127.0.1", false],
  ["::2", false],
  ["localhost.example", false],
  ["127.0.0.1.example", false],
])("%s is loopback: %s", (host, loopback) => {
  expect(isLoopback(host)).toBe(loopback);
});
