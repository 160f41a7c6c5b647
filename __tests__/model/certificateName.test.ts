import { CertificateNames, sniNames } from "../../src/model/certificateName.js";

/** By which names a certificate can be chosen, and which is. */

test("names of a certificate are its DNS names, in lower case, wildcards included", () => {
  const text = "DNS:Files.Example.org, DNS:*.example.org, IP Address:192.0.2.1, email:a@example.org, DNS:one";
  expect(sniNames(text)).toEqual(["files.example.org", "*.example.org", "one"]);
  expect(sniNames(undefined)).toEqual([]);
  expect(sniNames("IP Address:192.0.2.1")).toEqual([]);
});

test("names that no client can ask for are left out, also if they look like several", () => {
  // Node quotes what could be mistaken for more than one entry (CVE-2021-44532).
  expect(sniNames('DNS:"a.example, DNS:b.example", DNS:c.example')).toEqual(["c.example"]);
  expect(sniNames("DNS:f*.example.org, DNS:*, DNS:*.*.org, DNS:a..b, DNS:")).toEqual([]);
});

describe("of several certificates", () => {
  const names = new CertificateNames<string>();
  names.add(["example.org", "*.example.org"], "wide");
  names.add(["files.example.org", "*.files.example.org", "example.org"], "files");

  test.each([
    ["files.example.org", "files"],
    ["www.example.org", "wide"],
    ["a.files.example.org", "files"],
    ["example.org", "wide"],
    ["a.b.example.org", undefined],
    ["org", undefined],
    ["example.com", undefined],
    ["", undefined],
    [".example.org", "wide"],
  ])("%p gets %p", (name, expected) => {
    expect(names.find(name)).toBe(expected);
  });
});
