import { AcmeError, type AcmeProblem } from "../../src/runtime/acme/acmeError.js";
import type { OrderedCertificate } from "../../src/runtime/acme/acmeHost.js";
import { failureOf } from "../../src/runtime/acme/refusals.js";

/** What is said of an authority's refusal: whose name it concerns, what happened, and what to do. */

const authority = { name: "ca", directory: "https://ca.example/dir" };
function wanted(more: object = {}): OrderedCertificate {
  const names = ["a.example", "b.example"];
  const given = { id: "ca-1", names, keyType: "ec", challenge: "http-01", authority };
  return { ...given, ...more } as unknown as OrderedCertificate;
}
const refused = (code: string, detail = "", instance?: string): AcmeError =>
  new AcmeError(code, detail, { instance });
const onTls = wanted({ challenge: "tls-alpn-01" });
const withProfile = wanted({ authority: { ...authority, profile: "short" } });
const RETRIED = /Portico tries again later\.( |$)/;

test.each<[error: AcmeError, of: OrderedCertificate, message: RegExp, fix: RegExp]>([
  [
    refused("connection"),
    wanted(),
    /could not connect to port 80$/,
    /port 80 of this host reachable from the internet as a\.example/,
  ],
  [refused("connection"), onTls, /could not connect to port 443$/, /port 443 of this host/],
  [
    refused("dns", "NXDOMAIN."),
    wanted(),
    /look up the name: NXDOMAIN$/,
    /^Create an A record for a\.example/,
  ],
  [refused("unauthorized"), wanted(), /did not get the expected proof$/, /responds on port 80 in its place/],
  [refused("incorrectResponse"), onTls, /did not get the expected proof$/, /on port 443 in its place/],
  [
    refused("caa"),
    wanted(),
    /a CAA record forbids/,
    /^Add the authority ca to the CAA records of a\.example /,
  ],
  [refused("tls"), wanted(), /was redirected to https/, /^Remove the redirect .* repair the TLS of .*\.$/],
  [refused("tls"), onTls, /handshake on port 443 failed/, /^Remove whatever terminates TLS in front/],
  [refused("rateLimited"), wanted(), /rate limit/, /^Wait: .* staging directory\.$/],
  [refused("rejectedIdentifier"), wanted(), /for this name$/, /^Remove a\.example .* from files for it\.$/],
  [refused("rejectedIdentifier"), withProfile, /for this name$/, / Another profile may allow it\.$/],
  [refused("unsupportedIdentifier"), wanted(), /kind of name/, /^Remove a\.example/],
  [refused("badCSR"), wanted(), /refuses the request/, /another keyType than ec, or fewer names/],
  [refused("badPublicKey"), wanted(), /refuses the key/, /another keyType than ec\.$/],
  [refused("badSignatureAlgorithm"), wanted(), /of type ES256/, /^Use another authority/],
  [
    refused("externalAccountRequired"),
    wanted(),
    /requires an existing account/,
    /externalAccountBinding of ca\.$/,
  ],
  [refused("userActionRequired"), wanted(), /accept/, /^Log in at the authority/],
  [
    refused("userActionRequired", "", "https://ca.example/t"),
    wanted(),
    /accept/,
    /^Visit https:\/\/ca\.example\/t\.$/,
  ],
  [refused("invalidContact"), wanted(), /mail address/, /^Set email of ca to an address/],
  [refused("unsupportedContact"), wanted(), /mail address/, /^Remove email of ca/],
  [refused("invalidProfile"), withProfile, /offer the profile/, /^Remove profile of ca/],
  [
    refused("accountDoesNotExist"),
    wanted(),
    /does not know the account/,
    /^The proxy creates a new account\. /,
  ],
  [refused("orderNotReady", "Wait"), wanted(), /: Wait$/, RETRIED],
  [refused("alreadyReplaced"), wanted(), /: alreadyReplaced$/, RETRIED],
  [refused("badNonce"), wanted(), /one request several times/, /If it persists, ask the authority/],
  [refused("serverInternal"), wanted(), /the authority failed/, /status page/],
  [refused("malformed"), wanted(), /does not understand/, /directory of ca is an ACME directory/],
  [refused("unreachable"), wanted(), /cannot be reached/, /connections to https:\/\/ca\.example\/dir:/],
  [
    refused("untrusted"),
    wanted(),
    /own certificate is not trusted/,
    /set roots of ca to its root certificates;/,
  ],
  [refused("clock"), wanted(), /not valid at this time/, /timedatectl/],
  [
    refused("badResponse", "It was empty."),
    wanted(),
    /b\.example: It was empty$/,
    /no other server responds in its place/,
  ],
  [refused("noChallenge"), onTls, /: noChallenge$/, /another challenge than tls-alpn-01 for ca/],
  [refused("unusableCertificate"), wanted(), /cannot be used/, /another authority than ca,/],
  [refused("timeout"), wanted(), /: timeout$/, /^The order stays open\./],
  [refused("file", "EACCES"), wanted(), /: EACCES$/, /the free space of its disk/],
  [refused("somethingNew", "Nobody knows"), wanted(), /: Nobody knows$/, /status page/],
  [refused("constructor", "Nobody knows"), wanted(), /: Nobody knows$/, /status page/],
  [refused("toString"), wanted(), /: toString$/, /status page/],
])("%s of %#", (error, of, message, fix) => {
  const failure = failureOf(error, of, 17);
  expect(failure.message).toMatch(/^a\.example, b\.example: /);
  expect(failure.message).toMatch(message);
  expect(failure.fix).toMatch(fix);
  expect([failure.code, failure.at]).toEqual([error.code, 17]);
});

test("the authority's words are shown without what controls a terminal, and not without end", () => {
  const said = (detail: string): string => failureOf(refused("orderNotReady", detail), wanted(), 0).message;
  expect(said("a\u001bb\n ")).toBe("a.example, b.example: a\\u001bb\\n");
  expect(said("x".repeat(300))).toMatch(/ x{300}$/);
  expect(said("x".repeat(301))).toMatch(/ x{300}…$/);
});

test("of several problems each is said with its name if it is one of ours, the first with its fix, and five at most", () => {
  const problem = (name: string): AcmeProblem => ({
    code: name === "c.example" ? "caa" : "dns",
    detail: name.toUpperCase(),
    name,
  });
  const of = (...names: string[]) =>
    failureOf(new AcmeError("malformed", "see below", { subproblems: names.map(problem) }), wanted(), 0);
  const dns = "the authority could not look up the name";
  expect(of("b.example", "c.example")).toEqual({
    code: "dns",
    message: `b.example: ${dns}: B.EXAMPLE; a.example, b.example: a CAA record forbids this authority: C.EXAMPLE`,
    fix: expect.stringMatching(/^Create an A record for b\.example /) as string,
    at: 0,
  });
  const five = Array<string>(5).fill("a.example");
  expect(of(...five).message).toMatch(/(a\.example: .*){5}A\.EXAMPLE$/);
  expect(of(...five, "a.example").message).toMatch(/A\.EXAMPLE; and 1 more$/);
  expect(of("b.example").code).toBe("dns");
  expect(of().code).toBe("malformed");
});

test.each<[code: string, kind: string, words: RegExp]>([
  ["ENOTFOUND", "unreachable", /no address is known/],
  ["ENODATA", "unreachable", /no address is known/],
  ["EAI_AGAIN", "unreachable", /DNS servers/],
  ["ESERVFAIL", "unreachable", /DNS servers/],
  ["ETIMEOUT", "unreachable", /DNS servers/],
  ["ECONNREFUSED", "unreachable", /was refused/],
  ["ECONNRESET", "unreachable", /closed before the response/],
  ["EPIPE", "unreachable", /closed before the response/],
  ["ETIMEDOUT", "unreachable", /got no response/],
  ["ENETUNREACH", "unreachable", /no route/],
  ["EHOSTUNREACH", "unreachable", /no route/],
  ["CERT_NOT_YET_VALID", "clock", /not valid yet/],
  ["CERT_HAS_EXPIRED", "clock", /has expired/],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "untrusted", /for another name/],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "untrusted", /not from a root/],
  ["SELF_SIGNED_CERT_IN_CHAIN", "untrusted", /not from a root/],
  ["UNABLE_TO_GET_ISSUER_CERT", "untrusted", /not from a root/],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", "untrusted", /not from a root/],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "untrusted", /not from a root/],
  ["CERT_UNTRUSTED", "untrusted", /not from a root/],
  ["EMFILE", "unreachable", /^ca\.example: what Node says$/],
])("a connection that failed by %s is %s", (code, kind, words) => {
  const error = AcmeError.ofNetwork("ca.example", Object.assign(new Error("what Node says"), { code }));
  expect(error.code).toBe(kind);
  expect(error.detail).toMatch(/^ca\.example: /);
  expect(error.detail).toMatch(words);
});
