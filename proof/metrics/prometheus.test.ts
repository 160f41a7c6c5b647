import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { freePort } from "../../testkit/ports.js";
import { killAll, openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";

/** Debian's Prometheus asks for the metrics, and its linter has nothing to say of them. */

let prometheus: ChildProcess | undefined;
afterEach(async () => {
  prometheus?.kill("SIGKILL");
  killAll();
});

test("promtool finds nothing, and Prometheus has what was counted", async () => {
  const [port, metrics, own] = [await freePort(), await freePort(), await freePort()];
  const at = { address: "127.0.0.1", port: metrics };
  await Portico.start(
    oneServer({ listeners: [loopback("http", port)], metricsListener: at, routes: [fixed("hello")] }),
  );
  for (let i = 0; i < 5; i++) await (await fetch(`http://127.0.0.1:${port}/`)).text();
  const text = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
  const { stdout, stderr, status } = spawnSync("promtool", ["check", "metrics"], {
    input: text,
    encoding: "utf8",
  });
  expect({ said: `${stdout}${stderr}`, status }).toEqual({ said: "", status: 0 });

  const folder = openFolder();
  const config = join(folder, "prometheus.yml");
  writeFileSync(
    config,
    `global: { scrape_interval: 1s }\nscrape_configs:\n` +
      `  - { job_name: portico, static_configs: [{ targets: ["127.0.0.1:${metrics}"] }] }\n`,
  );
  const options = [`--config.file=${config}`, `--storage.tsdb.path=${folder}/data`];
  prometheus = spawn("prometheus", [...options, `--web.listen-address=127.0.0.1:${own}`], {
    stdio: "ignore",
  });
  const query = async (text: string): Promise<string | undefined> => {
    const url = `http://127.0.0.1:${own}/api/v1/query?query=${encodeURIComponent(text)}`;
    const response = await fetch(url).catch(() => undefined);
    if (response?.ok !== true) return undefined;
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    return data.result[0]?.value[1];
  };
  await eventually(async () => (await query("up")) === "1", "for Prometheus to ask", { everyMs: 100 });
  const requests =
    'sum(http_server_request_duration_seconds_count{route="all",http_response_status_code="200"})';
  expect(await query(requests)).toBe("5");
  expect(await query("portico_response_body_bytes_total{route='all'}")).toBe("25");
  for (const kind of ["master", "worker"])
    expect(Number(await query(`portico_resident_memory_bytes{process="${kind}"}`))).toBeGreaterThan(2 ** 20);
  const quantile = "histogram_quantile(0.9, sum by (le) (http_server_request_duration_seconds_bucket))";
  expect(Number(await query(quantile))).toBeGreaterThan(0);
  prometheus.kill();
  await once(prometheus, "close");
}, 60_000);
