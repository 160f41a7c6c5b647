import { tlsPolicySettings } from "../../src/model/net/tlsPolicy.js";

/** What each policy by name negotiates: Mozilla's as in its server-side TLS guidelines, 5.7, and 5.8 for the first group. */

const SUITES_1_3 = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
const MOZILLA = {
  maxVersion: "TLSv1.3",
  curvesIfKnown: ["X25519MLKEM768"],
  curves: ["X25519", "prime256v1", "secp384r1"],
  preferServerCiphers: false,
  sessionTimeoutSeconds: 24 * 60 * 60,
};

test("mozilla-modern", () => {
  expect(tlsPolicySettings("mozilla-modern")).toEqual({
    ...MOZILLA,
    minVersion: "TLSv1.3",
    ciphers: SUITES_1_3,
  });
});

test("mozilla-intermediate", () => {
  expect(tlsPolicySettings("mozilla-intermediate")).toEqual({
    ...MOZILLA,
    minVersion: "TLSv1.2",
    ciphers:
      `${SUITES_1_3}:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:` +
      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:" +
      "ECDHE-RSA-CHACHA20-POLY1305:DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305",
  });
});

test("file-sync is the contract's (docs/service.md, 3.2)", () => {
  expect(tlsPolicySettings("file-sync")).toEqual({
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
    ciphers:
      "EECDH+AESGCM:EDH+AESGCM:EECDH:EDH:!MD5:!RC4:!LOW:!MEDIUM:!CAMELLIA:!ECDSA:!DES:!DSS:!3DES:!NULL",
    curves: ["secp384r1"],
    preferServerCiphers: true,
    sessionTimeoutSeconds: 10 * 60,
  });
});

test("file-sync-tls13 is the contract's with TLS 1.3 before it", () => {
  const fileSync = tlsPolicySettings("file-sync");
  expect(tlsPolicySettings("file-sync-tls13")).toEqual({
    ...fileSync,
    maxVersion: "TLSv1.3",
    ciphers: `TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:${fileSync.ciphers}`,
    curvesIfKnown: ["X25519MLKEM768"],
    curves: [...fileSync.curves, "X25519"],
  });
});
