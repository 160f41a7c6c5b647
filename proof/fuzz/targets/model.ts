import { isDeepStrictEqual } from "node:util";
import {
  encodePath,
  normalisePath,
  parseConfigText,
  parseHost,
  upstreamTarget,
} from "../../../src/model/index.js";
import { proxyConfigText } from "../../../src/render/index.js";
import { WORDS } from "../cases/words.js";
import { demand, type FuzzTarget } from "../target.js";

const target: FuzzTarget = {
  name: "target",
  dictionary: WORDS.target,
  run(input) {
    // Bytes that the request line does not let through never get here.
    const text = `/${input.toString("latin1").replace(/[\x00-\x20\x7f]/g, "_")}`;
    const path = normalisePath(text);
    if (path === undefined) return;
    demand(path.startsWith("/"), "not rooted", path);
    demand(
      !path.split("/").some((segment) => segment === ".." || segment === "."),
      "dot segments are left",
      path,
    );
    demand(!path.includes("//"), "slashes are left", path);
    demand(!path.includes("\0"), "a NUL is left", path);
    demand(normalisePath(encodePath(path)) === path, "another path, encoded", path);
    demand(upstreamTarget("none", "/sync", text, path) === text, "not as it came", text);
    if (path !== "/synchttp" && !path.startsWith("/synchttp/")) return;
    for (const strip of ["raw", "nginx"] as const) {
      const sent = upstreamTarget(strip, "/synchttp", text, path);
      demand(/^\/[\x21-\x7e\x80-\xff]*$/.test(sent), "not one target", { strip, sent });
      const there = normalisePath(sent);
      demand(there !== undefined, "refused at the upstream", { strip, sent });
      // The file server sees the same file, however the client wrote it.
      const expected = path.slice("/synchttp".length);
      demand(there === (expected === "" ? "/" : expected), "another file", { strip, text, sent, there });
    }
  },
};

const host: FuzzTarget = {
  name: "host",
  dictionary: WORDS.host,
  run(input) {
    const text = input.toString("latin1");
    const parts = parseHost(text);
    if (parts === undefined) return;
    const { serverName, port } = parts;
    demand(/^[\x21-\x7e]+$/.test(text), "a host with blanks or controls", text);
    demand(!/[/?#@\\,%]/.test(text), "a host with delimiters", text);
    demand(port === "" || Number(port) <= 65_535, "no port", port);
    demand(
      serverName === serverName.toLowerCase() && !serverName.endsWith("."),
      "not normalised",
      serverName,
    );
    const again = parseHost(serverName.includes(":") ? `[${serverName}]` : serverName);
    demand(again?.serverName === serverName, "another name when parsed again", { text, serverName, again });
  },
};

const config: FuzzTarget = {
  name: "config",
  dictionary: WORDS.config,
  run(input) {
    const parsed = parseConfigText(input.toString("utf8"));
    if (!parsed.ok) {
      demand(parsed.problems.length > 0, "refused without a problem");
      for (const problem of parsed.problems)
        demand(problem.message !== "" && problem.fix !== "", "a mute problem", problem);
      return;
    }
    demand(Object.isFrozen(parsed.value), "the config is not frozen");
    const text = proxyConfigText(parsed.value);
    const again = parseConfigText(text);
    demand(again.ok, "what was rendered is refused", again.ok ? undefined : again.problems);
    // Rendering adds where the schema is.
    const given = { ...parsed.value, $schema: again.value.$schema };
    demand(isDeepStrictEqual(again.value, given), "another config when parsed again", text);
  },
};

export const MODEL_TARGETS: readonly FuzzTarget[] = [target, host, config];
