import { createPrivateKey, webcrypto, X509Certificate } from "node:crypto";
import "../../build/reflectMetadata.js";
import * as x509 from "@peculiar/x509";
import { serverNameOf } from "../../src/runtime/acme/challenges.js";
import * as der from "../../src/runtime/tls/der.js";
import { integer, time } from "../../src/runtime/tls/der.js";
import {
  certificateRequest,
  newKey,
  renewalId,
  temporaryCertificate,
  tlsAlpnCertificate,
} from "../../src/runtime/acme/x509.js";

/** What is written as DER here, read by others. */

/** Of a request, or in the field that a certificate has for it. */
function versionOf(raw: Buffer): number[] {
  const [content] = der.values(der.values(raw)[0]!.content);
  const [version] = der.values(content!.content);
  return [...(version!.tag === 0xa0 ? der.values(version!.content)[0]! : version!).content];
}

const MANY = Array.from({ length: 100 }, (_, i) => `name-${i}.of-some-length.example.org`);

test.each(["ecdsa-p256", "rsa-2048"] as const)(
  "a request with a key of %s has its names and is signed",
  async (type) => {
    const request = new x509.Pkcs10CertificateRequest(
      await certificateRequest([...MANY, "192.0.2.1", "2001:db8::1"], await newKey(type)),
    );
    expect(await request.verify(webcrypto)).toBe(true);
    expect(versionOf(Buffer.from(request.rawData))).toEqual([0]);
    expect(request.subject).toBe("");
    const names = request.extensions.find((one) => one instanceof x509.SubjectAlternativeNameExtension)!;
    const { items } = names.names;
    expect(items.slice(0, 100).map(({ type, value }) => `${type} ${value}`)).toEqual(
      MANY.map((name) => `dns ${name}`),
    );
    expect(items.slice(100).map(({ value }) => value)).toEqual(["192.0.2.1", "2001:db8::1"]);
  },
);

test.each(["ecdsa-p256", "rsa-2048", "rsa-3072"] as const)(
  "a temporary certificate with a key of %s is valid for its names and signed by itself",
  async (type) => {
    const { key, cert } = await temporaryCertificate(["a.example.org", "192.0.2.1", "2001:db8::1"], type);
    const certificate = new X509Certificate(cert);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkHost("a.example.org")).toBe("a.example.org");
    expect(certificate.checkIP("192.0.2.1")).toBe("192.0.2.1");
    expect(certificate.checkIP("2001:db8::1")).toBe("2001:db8::1");
    expect(certificate.ca).toBe(false);
    const { asymmetricKeyType, asymmetricKeyDetails } = createPrivateKey(key);
    const size = asymmetricKeyDetails?.modulusLength ?? asymmetricKeyDetails?.namedCurve;
    expect(`${asymmetricKeyType} ${size}`).toBe(
      type === "ecdsa-p256" ? "ec prime256v1" : type.replace("-", " "),
    );
  },
);

test("what proves a name by TLS has the hash in a critical extension (RFC 8737, 3)", async () => {
  const { cert } = await tlsAlpnCertificate("192.0.2.1", "token.thumbprint");
  const [proof] = new x509.X509Certificate(cert).extensions.filter(
    ({ type }) => type === "1.3.6.1.5.5.7.1.31",
  );
  expect(proof!.critical).toBe(true);
  const hash = await webcrypto.subtle.digest("SHA-256", Buffer.from("token.thumbprint"));
  expect(Buffer.from(proof!.value)).toEqual(Buffer.concat([Buffer.from([0x04, 0x20]), Buffer.from(hash)]));
});

test("an address is asked for by its reverse name (RFC 8738, 6)", () => {
  expect(serverNameOf("a.example.org")).toBe("a.example.org");
  expect(serverNameOf("192.0.2.1")).toBe("1.2.0.192.in-addr.arpa");
  expect(serverNameOf("2001:db8::1")).toBe(
    "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa",
  );
});

test("the example of RFC 9773, 4.1 has its renewal id", async () => {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, [
    "sign",
    "verify",
  ])) as webcrypto.CryptoKeyPair;
  const made = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: "0087654321",
      name: "CN=a",
      notBefore: new Date(),
      notAfter: new Date(Date.now() + 86_400_000),
      signingAlgorithm: algorithm,
      keys,
      extensions: [new x509.AuthorityKeyIdentifierExtension("69885b6b87464041e1b37b847ba0ae2cde01c8d4")],
    },
    webcrypto,
  );
  expect(renewalId(new X509Certificate(made.toString("pem")))).toBe("aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE");
  expect(
    renewalId(new X509Certificate((await temporaryCertificate(["a"], "ecdsa-p256")).cert)),
  ).toBeUndefined();
});

test("integers are not negative, and years have four digits from 2050 on", () => {
  expect(integer(Buffer.from([0, 0, 0x80]))).toEqual(Buffer.from([2, 2, 0, 0x80]));
  expect(integer(Buffer.from([0]))).toEqual(Buffer.from([2, 1, 0]));
  expect(time(new Date("2049-12-31T23:59:59Z")).toString("latin1")).toContain("491231235959Z");
  expect(time(new Date("2050-01-01T00:00:00Z")).toString("latin1")).toContain("20500101000000Z");
});

test("a temporary certificate is for servers, from yesterday for a year, and signs no other", async () => {
  const { cert } = await temporaryCertificate(["a.example.org"], "ecdsa-p256");
  const made = new X509Certificate(cert);
  const days = (at: string): number => (Date.parse(at) - Date.now()) / 86_400_000;
  expect([days(made.validFrom), days(made.validTo)]).toEqual([expect.closeTo(-1, 2), expect.closeTo(365, 2)]);
  expect([made.subject, made.issuer, made.keyUsage]).toEqual([
    "CN=temporary certificate of portico",
    "CN=temporary certificate of portico",
    ["1.3.6.1.5.5.7.3.1"],
  ]);
  expect(versionOf(made.raw)).toEqual([2]);
  const { extensions } = new x509.X509Certificate(cert);
  expect(extensions.map(({ type, critical }) => [type, critical])).toEqual([
    ["2.5.29.17", false],
    ["2.5.29.19", true],
    ["2.5.29.37", false],
  ]);
  expect(Math.max(...cert.split("\n").map((line) => line.length))).toBe(64);
});

describe("DER", () => {
  const hex = (bytes: Buffer): string => bytes.toString("hex");

  test.each([
    ["no bytes", der.octets(Buffer.alloc(0)), "0400"],
    ["an integer", der.integer(Buffer.from([0x7f])), "02017f"],
    ["one that looks negative", der.integer(Buffer.from([0x80])), "02020080"],
    ["zero, in two bytes", der.integer(Buffer.from([0, 0])), "020100"],
    ["one that looks negative, in two bytes", der.integer(Buffer.from([0, 0x80])), "02020080"],
    ["a bit string", der.bits(Buffer.from([7])), "03020007"],
    ["text", der.utf8("\u00e9"), "0c02c3a9"],
    ["nothing", der.nil(), "0500"],
    ["yes", der.yes(), "0101ff"],
    ["an identifier", der.oid("550403"), "0603550403"],
    ["a set in a sequence", der.sequence(der.set(der.nil()), der.nil()), "3006310205000500"],
    ["a field", der.explicit(3, der.nil()), "a3020500"],
    ["a string's field", der.implicit(2, Buffer.from("a")), "820161"],
    [
      "a year with two digits",
      der.time(new Date("2049-12-31T23:59:59.999Z")),
      "170d3439313233313233353935395a",
    ],
    ["one with four", der.time(new Date("2050-01-01T00:00:00Z")), "180f32303530303130313030303030305a"],
  ])("%s", (_, bytes, expected) => expect(hex(bytes)).toBe(expected));

  test.each([
    [127, "047f"],
    [128, "048180"],
    [255, "0481ff"],
    [256, "04820100"],
    [65_536, "0483010000"],
  ])("a length of %d", (length, start) => {
    const written = der.octets(Buffer.alloc(length));
    expect(hex(written.subarray(0, start.length / 2))).toBe(start);
    expect(
      der.values(Buffer.concat([written, der.nil()])).map(({ tag, content }) => [tag, content.length]),
    ).toEqual([
      [4, length],
      [5, 0],
    ]);
    expect(() => der.values(written.subarray(0, -1))).toThrow(RangeError);
  });
});
