import { certificateCopiesUnit, renderUnit } from "../../src/render/index.js";
import { expectGolden } from "./golden.js";

test("what copies certificates on a host of a pair", () => {
  const unit = certificateCopiesUnit({
    nodePath: "/usr/bin/node",
    runtime: "/usr/lib/portico/portico.mjs",
    config: "/etc/portico/portico.json",
    address: "192.0.2.11",
    peer: "192.0.2.12",
    port: 9181,
    keyFile: "/var/lib/portico/shared/copy-key",
  });
  expectGolden("portico-copies.service", renderUnit(unit));
});
