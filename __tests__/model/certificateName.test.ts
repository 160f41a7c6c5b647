import { X509Certificate } from "node:crypto";
import { issue } from "../../testkit/certificates.js";
import { coversName, sniNames } from "../../src/model/net/certificateName.js";
import { NameTable } from "../../src/model/net/serverName.js";

/** By which names a certificate can be chosen, and which is. */

test("names of a certificate are its DNS names, in lower case, wildcards included", () => {
  const text = "DNS:Files.Example.org, DNS:*.example.org, IP Address:192.0.2.1, email:a@example.org, DNS:one";
  expect(sniNames(text)).toEqual(["files.example.org", "*.example.org", "one"]);
  expect(sniNames(undefined)).toEqual([]);
  expect(sniNames("IP Address:192.0.2.1")).toEqual([]);
  expect(sniNames("URI:DNS:a.example, DNS:b.example\n")).toEqual([]);
});

test("names that no client can ask for are left out, also if they look like several", () => {
  // Node quotes what could be mistaken for more than one entry (CVE-2021-44532).
  expect(sniNames('DNS:"a.example, DNS:b.example", DNS:c.example')).toEqual(["c.example"]);
  expect(sniNames("DNS:f*.example.org, DNS:*, DNS:*.*.org, DNS:a..b, DNS:")).toEqual([]);
});

describe("of several certificates", () => {
  const names = new NameTable<string>();
  names.add(["example.org", "*.example.org"], "wide");
  names.add(["files.example.org", "*.files.example.org", "example.org"], "files");

  test.each([
    ["files.example.org", "files"],
    ["www.example.org", "wide"],
    ["a.files.example.org", "files"],
    ["example.org", "wide"],
    ["a.b.example.org", undefined],
    ["org", undefined],
    ["localhost", undefined],
    ["example.com", undefined],
    ["", undefined],
    [".example.org", undefined],
  ])("%p gets %p", (name, expected) => {
    expect(names.find(name)).toBe(expected);
  });
});

test.each<[string, string, string[], string[]]>([
  ["by its own", "a.example", ["a.example", "192.0.2.1"], ["a.example", "192.0.2.1"]],
  ["by a wildcard", "*.b.example", ["*.b.example"], ["a.b.example", "*.b.example"]],
  // OpenSSL by itself would go by these; browsers do not.
  ["not by its common name", "a.example", [], []],
  ["not by its common name beside an address", "a.example", ["192.0.2.1"], ["192.0.2.1"]],
  ["not by a wildcard within a label", "a.b.example", ["a*.b.example", "*a.b.example"], []],
])("which names a certificate covers: %s", async (_what, name, names, covered) => {
  const { cert } = await issue({ type: "ec", name, names });
  const certificate = new X509Certificate(cert);
  const asked = ["a.example", "b.example", "b.b.b.example", "a.b.example", "192.0.2.1", "192.0.2.2"];
  expect(
    [...asked, "2001:db8::1", "*.b.example", "*.example"].filter((each) => coversName(certificate, each)),
  ).toEqual(covered);
});
