import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { TerraformStack, Testing } from "cdktf";
import { type Application, FrontEnd, Mode, TlsMaterial } from "../../src/constructs/index.js";
import { dhParametersPem, proxyConfigText } from "../../src/render/index.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { startProcess } from "../wire/processes.js";

/** The front end of an application, on loopback. */
export interface ApplicationFrontEnd {
  readonly port: number;
  /** What is deployed for it. */
  readonly stack: FrontEnd<object, object>;
  stop(): Promise<void>;
}

/** A folder for what a front end has, and what is beside it. */
export class Place {
  readonly folder = mkdtempSync(join(tmpdir(), "portico-application-"));
  readonly certificate = join(this.folder, "tls.crt");
  readonly key = join(this.folder, "tls.key");

  constructor() {
    chmodSync(this.folder, 0o755);
  }

  static async make(name: string): Promise<Place> {
    const place = new Place();
    const { cert, key } = await issue({ names: [name] });
    writeFileSync(place.certificate, cert);
    writeFileSync(place.key, key, { mode: 0o600 });
    writeFileSync(join(place.folder, "dh.pem"), dhParametersPem());
    return place;
  }

  /** The directories of a Seafile, whose avatars are links out of its media. */
  withSeafile(): this {
    const files = [
      "seafile-server-latest/seahub/media/img/a.png",
      "seahub-data/avatars/a.png",
      "seahub-data/custom/logo.png",
    ];
    for (const name of files) {
      mkdirSync(dirname(join(this.folder, name)), { recursive: true });
      writeFileSync(join(this.folder, name), `/${name}`, { mode: 0o644 });
    }
    for (const name of ["avatars", "custom"])
      symlinkSync(
        join(this.folder, "seahub-data", name),
        join(this.folder, "seafile-server-latest/seahub/media", name),
      );
    return this;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Runs what a `FrontEnd` deploys for an application, with its parts on these ports. */
export async function startApplicationFrontEnd(
  place: Place,
  application: Application,
  upstreams: Readonly<Record<string, number>>,
  publicName: string,
): Promise<ApplicationFrontEnd> {
  const [http, https] = (await freePorts(2)) as [number, number];
  const { folder, certificate, key } = place;
  const material = TlsMaterial.fromFiles({ certificate, key, dhparam: join(folder, "dh.pem") });
  const urls = Object.entries(upstreams).map(([part, port]) => [part, { url: `http://127.0.0.1:${port}` }]);
  const logDirectory = join(folder, `logs-${https}`);
  const stack = new FrontEnd(new TerraformStack(Testing.app(), "stack"), "files", {
    host: { address: "127.0.0.1", publicName },
    mode: Mode.tls({ address: "127.0.0.1", httpPort: http, httpsPort: https, material }),
    application: application as Application<object, object>,
    upstreams: Object.fromEntries(urls) as object,
    paths: { logDirectory, defaultPageDirectory: folder },
    proxy: { workers: 1 },
    service: { runtimeBundle: await sharedBundle() },
    activation: {},
  });
  mkdirSync(logDirectory);
  const config = join(folder, `portico-${https}.json`);
  writeFileSync(config, proxyConfigText(stack.proxy.config));
  const command = [process.execPath, await sharedBundle(), "serve", config];
  const { stop } = await startProcess({ command, ports: [https] });
  return { port: https, stack, stop };
}
