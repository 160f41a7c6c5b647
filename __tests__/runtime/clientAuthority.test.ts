import { X509Certificate } from "node:crypto";
import { ClientAuthority } from "../../src/runtime/tls/clientAuthority.js";
import { alternativeNames } from "../../src/runtime/tls/clientCertificates.js";
import * as der from "../../src/runtime/tls/der.js";
import { issue, type Issued, revocationList } from "../../testkit/certificates.js";
import { Random } from "../../testkit/random.js";

/** Files of authorities and of revoked certificates that are refused, and names of certificates. */

let ca: Issued;
let other: Issued;
let middle: Issued;
let client: Issued;

beforeAll(async () => {
  ca = await issue({ type: "ec", name: "Clients", ca: true });
  other = await issue({ type: "rsa", name: "Others", ca: true });
  middle = await issue({ type: "ec", name: "Middle", issuer: ca, ca: true });
  client = await issue({ type: "ec", name: "alice", issuer: ca, serial: Buffer.from([1, 2]) });
});

/** RFC 5280, 5.2.4: a delta list. */
const DELTA = der.sequence(der.oid("551d1b"), der.yes(), der.octets(der.integer(Buffer.from([1]))));
const NUMBER = der.sequence(der.oid("551d14"), der.octets(der.integer(Buffer.from([1]))));

test("files that do not fit are refused, each with its reason", () => {
  const list = revocationList(ca);
  const refused = (file: "ca" | "crl", message: RegExp) => ({
    file,
    message: expect.stringMatching(message),
  });
  const of = (authorities: string, crl?: string) =>
    ClientAuthority.of(crl === undefined ? { ca: authorities } : { ca: authorities, crl });
  expect(of("")).toEqual(refused("ca", /^contains no certificate in PEM form/));
  expect(of(ca.cert.replace(/[A-Za-z]{8}\n/, "////////\n"))).not.toBeInstanceOf(ClientAuthority);
  expect(of(client.cert)).toEqual(refused("ca", /CN=alice, which may sign no other/));
  expect(of(middle.cert)).toEqual(refused("ca", /CN=Middle, but not the certificate that signed it/));
  expect(of(ca.cert, "x")).toEqual(refused("crl", /^contains no list/));
  expect(of(ca.cert, list.replace("MI", "MM"))).toEqual(refused("crl", /damaged/));
  expect(of(ca.cert, revocationList(other))).toEqual(refused("crl", /no list that the authority CN=Clients/));
  // The name alone does not make a list one of the authority.
  const forged = revocationList({ ...other, name: "Clients" });
  expect(of(ca.cert, forged)).toEqual(refused("crl", /no list that the authority CN=Clients/));
  expect(of(ca.cert, list + list)).toEqual(refused("crl", /more than one list/));
  expect(of(ca.cert, list + revocationList(other))).toEqual(
    refused("crl", /no authority of `ca` has signed/),
  );
  expect(of(ca.cert + middle.cert, list)).toEqual(refused("crl", /no list that the authority CN=Middle/));
  expect(of(ca.cert, revocationList(ca, { extensions: [DELTA] }))).toEqual(refused("crl", /part of a list/));
  for (const crl of [list, revocationList(ca, { extensions: [NUMBER] })])
    expect(of(ca.cert, crl)).toBeInstanceOf(ClientAuthority);
  expect(of(ca.cert + other.cert, list + revocationList(other))).toBeInstanceOf(ClientAuthority);
});

test("a random byte in what is signed of a list is refused, and never throws", () => {
  const random = new Random();
  const whole = Buffer.from(revocationList(ca).replace(/-----.*-----|\n/g, ""), "base64");
  const signed = der.values(der.values(whole)[0]!.content)[0]!.content;
  const from = signed.byteOffset - whole.byteOffset;
  for (let i = 0; i < 500; i++) {
    const bytes = Buffer.from(whole);
    bytes[from + random.pick(signed.length)] = random.pick(256);
    const crl = `-----BEGIN X509 CRL-----\n${bytes.toString("base64")}\n-----END X509 CRL-----\n`;
    const made = ClientAuthority.of({ ca: ca.cert, crl });
    if (!bytes.equals(whole)) expect(made).not.toBeInstanceOf(ClientAuthority);
  }
});

test("a chain is judged again by other files", () => {
  const of = (authorities: string, crl?: string): ClientAuthority => {
    const made = ClientAuthority.of(crl === undefined ? { ca: authorities } : { ca: authorities, crl });
    if (!(made instanceof ClientAuthority)) throw new Error(made.message);
    return made;
  };
  const own = new X509Certificate(client.cert);
  const chain = of(ca.cert).chainOf(own)!;
  expect(chain.map(({ subject }) => subject)).toEqual(["CN=alice", "CN=Clients"]);
  expect(of(other.cert).chainOf(own)).toBeUndefined();
  const end = Date.parse(own.validTo);
  expect(of(ca.cert).stillGood(chain)).toEqual({ until: end });
  const soon = of(ca.cert, revocationList(ca, { to: 1 })).stillGood(chain);
  expect(typeof soon === "object" && soon.until < end).toBe(true);
  const revoked = revocationList(ca, { revoked: [Buffer.from([1, 2])] });
  expect(of(ca.cert, revoked).stillGood(chain)).toBe("revoked");
  expect(of(other.cert).stillGood(chain)).toBe("unknown-authority");
});

test.each<[text: string, names: readonly string[]]>([
  ["DNS:a.example, email:b@example.org, URI:https://c/", ["a.example", "b@example.org", "https://c/"]],
  ["IP Address:192.0.2.1, DNS:a", ["a"]],
  // One name that looks like two, as Node quotes it.
  ['URI:"https://a/, email:root@example.org"', ["https://a/, email:root@example.org"]],
  ['DirName:"CN=x\\\\, DNS:y", DNS:z', ["z"]],
  // Nobody knows what this is.
  ['DNS:a, email:"b', []],
  ["", []],
])("the alternative names %s", (text, names) => {
  expect(alternativeNames(text)).toEqual(names);
});
