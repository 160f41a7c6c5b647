import { baseName, pathName } from "../../src/model/host/credentialName.js";

test.each([
  ["/etc/letsencrypt/live/a/privkey.pem", "privkey.pem", "etc_letsencrypt_live_a_privkey.pem"],
  ["/key", "key", "key"],
])("the credential of %s is %s, or %s", (path, short, long) => {
  expect([baseName(path), pathName(path)]).toEqual([short, long]);
});
