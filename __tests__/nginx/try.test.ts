import { createSite } from "./site.js";
import { freePorts } from "./ports.js";
import { installPortico, startPortico } from "./porticoServer.js";
import { startNginx, findNginx } from "./nginxServer.js";
import { Upstreams } from "./upstreams.js";
import { talkHttp1 } from "./http1Client.js";
import { talkHttp2 } from "./http2Client.js";
test("x", async () => {
  const site = await createSite();
  const bundle = await installPortico(site);
  for (const mode of ["plain", "tls"] as const) {
    for (const who of ["nginx", "portico"]) {
      const [http, https, web, files, dav] = await freePorts(5) as [number, number, number, number, number];
      const ports = { http, https, web, files, dav };
      const t = Date.now();
      const up = await Upstreams.start(ports);
      const proc = who === "nginx" ? await startNginx(findNginx()!, mode, site, ports) : await startPortico(bundle, mode, site, ports);
      process.stderr.write(`${who} ${mode} started in ${Date.now() - t}\n`);
      const tls = mode === "tls";
      for (const path of ["/sync/x", "/synchttp/y", "/syncmedia/img/a.png", "/"]) {
        await up.prepare(undefined);
        const t = Date.now();
        const r = await talkHttp1({ port: tls ? https : http, tls, serverName: "sync.example", steps: [`GET ${path} HTTP/1.1\r\nHost: sync.example\r\nX-Foo: 1\r\n\r\n`], upstreamBytes: () => up.bytes });
        const t2 = Date.now();
        const req = await up.settle();
        process.stderr.write(`${who} ${path} ${t2 - t} ${Date.now() - t2}ms ${JSON.stringify(r)} ${JSON.stringify(req.map((q) => [q.upstream, q.line, q.fields]))}\n`);
      }
      if (tls) { await up.prepare(undefined);
        const r = await talkHttp2({ port: https, serverName: "sync.example", method: "POST", target: "/sync/x", authority: "sync.example", fields: [], body: ["abc"] });
        process.stderr.write(`${who} h2 ${JSON.stringify(r)} ${JSON.stringify(await up.settle())}\n`);
      }
      const t3 = Date.now();
      await proc.stop();
      process.stderr.write(`stopped in ${Date.now() - t3}\n`);
      await up.close();
    }
  }
  site.remove();
}, 60000);
