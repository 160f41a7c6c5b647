import fc from "../../testkit/property.js";
import { refusalIn, signed, updateMessage } from "../../src/runtime/acme/dnsMessage.js";
import { acmeDnsAccountsIn, apiTokenIn, tsigKeyIn } from "../../src/runtime/load/dnsFiles.js";

/** Updates of zones, as BIND 9.18 took them and responded to them. */

const bytes = (hex: string): Buffer => Buffer.from(hex.replace(/\s/g, ""), "hex");
const keyFile = (secret: string): string =>
  `key "acme.key" {\n\talgorithm hmac-sha256;\n\tsecret "${secret}";\n};\n`;
const KEY = tsigKeyIn(keyFile("YSBzZWNyZXQgb2Ygc29tZSB0aGlydHktdHdvIGNoYXJhY3RlcnM="))!;
/** When BIND signed. */
const SECONDS = 0x6b085cd4;
const ZONE = "076578616d706c65036e65740000060001";
const RECORD = "0f5f61636d652d6368616c6c656e67650161076578616d706c65036e657400";
const TSIG = "0461636d65036b65790000fa00ff00000000";
const ALGORITHM = "0b686d61632d73686132353600 00006b085cd4012c";
const MAC = "bb5503cf71ed85a5f77f0c0b278db3cc2488f6b968cfa492ffb55863cea74043";
const RESPONSE = bytes(
  `d6d8a8000001000000000001 ${ZONE} ${TSIG} 003d ${ALGORITHM} 0020
  4ab326b5358e9895d9c078604d3e9f236f0582ef570f5283814d61babe42aa86 d6d800000000`,
);

const record = [{ name: "_acme-challenge.a.example.net", value: "v" }];

/** With the number that was BIND's. */
function numbered(message: Buffer): Buffer {
  message.writeUInt16BE(0xd6d8);
  return message;
}
const REQUEST = signed(numbered(updateMessage("example.net", "present", record, 60)), KEY, SECONDS);

test("a record is added for a time, or removed by its value; a signature covers all of it", () => {
  const update = (counts: string, change: string): Buffer =>
    bytes(`d6d828000001 0000 0001 ${counts} ${ZONE} ${RECORD} 0010 ${change} 0002 0176`);
  expect(numbered(updateMessage("example.net", "present", record, 60))).toEqual(
    update("0000", "0001 0000003c"),
  );
  expect(numbered(updateMessage("example.net", "cleanup", record, 60))).toEqual(
    update("0000", "00fe 00000000"),
  );
  expect(REQUEST.mac).toEqual(bytes(MAC));
  const tsig = bytes(`${TSIG} 003d ${ALGORITHM} 0020 ${MAC} d6d800000000`);
  expect(REQUEST.bytes).toEqual(Buffer.concat([update("0001", "0001 0000003c"), tsig]));
});

test("a response counts if all of it is as the server signed it", () => {
  expect(refusalIn(RESPONSE, REQUEST, KEY)).toBeUndefined();
  const other = tsigKeyIn(keyFile("YW5vdGhlciBzZWNyZXQgb2YgMzIgY2hhcmFjdGVycy4="))!;
  expect(refusalIn(RESPONSE, REQUEST, other)).toBe("its response is not signed with the key");
  for (let i = 0; i < RESPONSE.length; i++) {
    const changed = Buffer.from(RESPONSE);
    changed[i]! ^= 1;
    // TTL and class of the signature's record, and the number that a forwarder may have changed, are not signed.
    const unsigned = (i >= 41 && i < 47) || i === 104 || i === 105;
    if (!unsigned) expect([i, typeof refusalIn(changed, REQUEST, KEY)]).toEqual([i, "string"]);
    expect([i, typeof refusalIn(RESPONSE.subarray(0, i), REQUEST, KEY)]).toEqual([i, "string"]);
  }
});

test("whatever a server sends has an end, and is no success", () => {
  const head = fc.constantFrom(
    "d6d8a8000001000000000001",
    "d6d8a800ffffffffffffffff",
    "d6d8a809000100000000ffff",
    "",
  );
  const names = fc.constantFrom("c00c", "c00e", "c000", "3f", "00", "ff", ZONE, TSIG);
  fc.assert(
    fc.property(
      head,
      fc.array(
        fc.oneof(
          names,
          fc.uint8Array({ maxLength: 20 }).map((some) => Buffer.from(some).toString("hex")),
        ),
      ),
      (start, rest) => {
        expect(typeof refusalIn(bytes(start + rest.join("")), REQUEST, KEY)).toBe("string");
      },
    ),
  );
});

test.each([
  [127, "its response is not signed with the key"],
  [128, "its response is not a DNS message"],
])("a name of %s labels", (labels, outcome) => {
  const name = `${"0161".repeat(labels)}00`;
  const tsig = `00fa 00ff 00000000 003d ${ALGORITHM} 0020 ${MAC} d6d800000000`;
  expect(refusalIn(bytes(`d6d8a8000000000000000001 ${name} ${tsig}`), REQUEST, KEY)).toBe(outcome);
  // A name that is only passed over may have as many as fit.
  expect(refusalIn(bytes(`d6d8a8000001000000000000 ${name} 00060001`), REQUEST, KEY)).toBe(
    "its response is not signed with the key",
  );
});

test.each<[string, string]>([
  ["a808 0001000000000000", "it refuses the update (code 8)"],
  ["a801 0001000000000000", "it refuses the update (FORMERR)"],
  ["a802 0001000000000000", "it refuses the update (SERVFAIL)"],
  ["a803 0001000000000000", "it refuses the update (NXDOMAIN)"],
  ["a804 0001000000000000", "it refuses the update (NOTIMP): it takes no updates"],
  ["a809 0001000000000000", "it refuses the update (NOTAUTH): it is not the primary server of the zone"],
  ["a80a 0001000000000000", "it refuses the update (NOTZONE): the record is not in the zone"],
  ["a805 0001000000000000", "it refuses the update (REFUSED): the key may not change this record"],
  ["a800 0001000000000000", "its response is not signed with the key"],
  ["2800 0001000000000000", "its response belongs to another message"],
])("a response of %s: %s", (rest, said) => {
  expect(refusalIn(bytes(`d6d8 ${rest} ${ZONE}`), REQUEST, KEY)).toBe(said);
});

test.each([
  [16, /\(NOTAUTH\): the key of this name has another secret there$/],
  [17, /\(NOTAUTH\): it does not know the key$/],
  [18, /\(NOTAUTH\): its clock and that of this host differ by more than five minutes$/],
  [19, /\(NOTAUTH\): it is not the primary server of the zone$/],
])("a response that says what is wrong with the signature (%d)", (error, said) => {
  const response = Buffer.from(RESPONSE);
  response.writeUInt16BE(0xa809, 2);
  response.writeUInt16BE(error, response.length - 4);
  expect(refusalIn(response, REQUEST, KEY)).toMatch(said);
});

const SECRET_OF_16 = "MTIzNDU2Nzg5MDEyMzQ1Ng==";
test.each([
  ["acme.key", "hmac-sha256", "acme.key"],
  ["ACME.Key.", "hmac-sha384", "acme.key"],
  ['"a.b.example."', "hmac-sha512", "a.b.example"],
])("a key is known by its name in lower case, without the dot at the end: %s", (written, algorithm, name) => {
  const found = tsigKeyIn(`key ${written} { algorithm ${algorithm}; secret "${SECRET_OF_16}"; };`);
  expect(found).toEqual({ name, algorithm, secret: Buffer.from("1234567890123456") });
});

test.each([
  ["", false],
  [keyFile("MTIzNDU2Nzg5MDEyMzQ1"), false],
  [keyFile("c2hvcnQ="), false],
  [keyFile("YSBzZWNyZXQgb2Ygc29tZSBieXRlcw=="), true],
  [`\n key acme. { secret "YSBzZWNyZXQgb2Ygc29tZSBieXRlcw=="; algorithm hmac-sha512; } ;`, true],
  [`key "a" { algorithm hmac-md5; secret "YSBzZWNyZXQgb2Ygc29tZSBieXRlcw=="; };`, false],
  [`key "a b" { algorithm hmac-sha256; secret "YSBzZWNyZXQgb2Ygc29tZSBieXRlcw=="; };`, false],
  [`${keyFile("YSBzZWNyZXQgb2Ygc29tZSBieXRlcw==")}${keyFile("YSBzZWNyZXQgb2Ygc29tZSBieXRlcw==")}`, false],
])("a file with %j is a key: %s", (text, isKey) => {
  expect(tsigKeyIn(text) !== undefined).toBe(isKey);
});

const ACCOUNT = { username: "u", password: "p", subdomain: "s", fulldomain: "s.auth.example" };
test.each<[unknown, string[] | undefined]>([
  [ACCOUNT, ["*"]],
  [{ ...ACCOUNT, allowfrom: [] }, ["*"]],
  [{ "example.org": ACCOUNT }, ["example.org"]],
  [{ "*.example.com": ACCOUNT }, ["example.com"]],
  [{ "example.org": ACCOUNT, "*.example.com": ACCOUNT }, ["example.org", "example.com"]],
  [{ "example.org": ACCOUNT, "example.com": {} }, undefined],
  [{ "example.com": {} }, undefined],
  [{ ...ACCOUNT, password: "a\nb" }, undefined],
  [{ ...ACCOUNT, fulldomain: "a b" }, undefined],
  [{}, undefined],
  [[], undefined],
  [null, undefined],
  ["text", undefined],
])("accounts of acme-dns in %j: %j", (value, names) => {
  const accounts = acmeDnsAccountsIn(JSON.stringify(value));
  expect(accounts && [...accounts.keys()]).toEqual(names);
});

test.each([
  ["abc-D_1\n", "abc-D_1"],
  ["  abc\r\n", "abc"],
  ["", undefined],
  ["\n", undefined],
  ["a b", undefined],
  ["a\nb", undefined],
  ["é", undefined],
])("the API token in %j: %j", (text, token) => expect(apiTokenIn(text)).toBe(token));
