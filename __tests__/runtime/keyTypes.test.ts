import { issue } from "../../testkit/certificates.js";
import { TLS_POLICIES, type TlsPolicySettings } from "../../src/model/index.js";
import { keyTypeFor, takesKeyType } from "../../src/model/net/tlsPolicy.js";
import { handshakeProblem } from "../../src/runtime/tls/handshakeCheck.js";

/** Which keys the ciphers of a policy take: what the model says, and what a handshake of OpenSSL shows. */

const made = { ec: issue({ type: "ec" }), rsa: issue({ type: "rsa" }) };

const TLS_1_2: TlsPolicySettings = { ...TLS_POLICIES["file-sync"], curves: ["prime256v1", "secp384r1"] };

test.each([
  TLS_POLICIES["file-sync"].ciphers,
  TLS_POLICIES["mozilla-intermediate"].ciphers,
  "ECDHE+AESGCM",
  "EECDH+AESGCM:EDH+AESGCM",
  "HIGH:!aNULL",
  "HIGH:!aNULL:!ECDSA",
  "HIGH:!aNULL:!aECDSA",
  "HIGH:!aNULL:!ECDSA+SHA1",
  "HIGH:!aNULL:!aRSA+SHA1",
  "HIGH:!aNULL:!RSA",
  "HIGH:!aNULL:!aRSA",
  // Words that it does not know exclude nothing.
  "HIGH:!aNULL:ECDHE-ECDSA:ECDHE-aRSA",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256",
  "AES128-GCM-SHA256",
  "kRSA+AESGCM",
  "ECDHE+aRSA+AESGCM",
  "ECDHE+aECDSA+AESGCM",
  "ECDSA+AESGCM",
  "TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES256-GCM-SHA384",
])("%s", async (ciphers) => {
  const policy = { ...TLS_1_2, ciphers };
  for (const [type, keyType] of [
    ["ec", "ecdsa-p256"],
    ["rsa", "rsa-2048"],
  ] as const) {
    const { key, cert } = await made[type];
    const contents = { id: "", source: "files", key, cert } as const;
    const failed = await handshakeProblem(policy, { contents, keyType }, undefined, "tls");
    expect([keyType, takesKeyType(policy, keyType)]).toEqual([keyType, failed === undefined]);
  }
  expect(takesKeyType(policy, keyTypeFor(policy))).toBe(true);
});

test("policies by name: RSA where ECDSA is excluded, ECDSA everywhere else", () => {
  const names = ["file-sync", "file-sync-tls13", "mozilla-intermediate", "mozilla-modern"] as const;
  expect(names.map((name) => keyTypeFor(name))).toEqual(["rsa-2048", "rsa-2048", "ecdsa-p256", "ecdsa-p256"]);
});
