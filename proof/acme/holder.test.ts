import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import * as tls from "node:tls";
import { run } from "../../src/cli/program.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { AcmeEngine } from "../../src/runtime/acme/engine.js";
import type { ListedCertificate } from "../../src/runtime/supervisor/control/certificateList.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { ControlOutcome } from "../../src/runtime/supervisor/control/control.js";
import { fixed, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { Between } from "./between.js";
import { TestCa } from "./ca.js";
import { MovedAddress } from "./movedAddress.js";
import { issued, type Stage, startStage } from "./stage.js";

/** Two hosts with one address and the same certificates: whoever has the address asks the authority. */

const address = new MovedAddress();
afterEach(() => address.moveTo(undefined));

const NEW_ACCOUNT = "/sign-me-up";

/** Without what a host is just writing: it may be gone before it is copied. */
function copyState(from: { state: string }, to: { state: string }): void {
  const filter = (file: string): boolean => !/^\..*\.tmp$/.test(basename(file));
  cpSync(from.state, to.state, { recursive: true, filter });
}

describe("two proxies", () => {
  const NAME = "files.example.net";
  let ca: TestCa;
  let between: Between;
  const started: Host[] = [];
  beforeAll(async () => {
    ca = await TestCa.start();
    between = await Between.start(ca);
  });
  afterEach(async () => {
    for (const host of started.splice(0)) await host.portico.stop();
  });
  afterAll(async () => {
    await between.stop();
    await ca.stop();
  });

  function config(own: string): ProxyConfigInput {
    const tls = { acme: { authority: "ca", names: [NAME] }, policy: "mozilla-intermediate" } as const;
    return oneServer({
      certificateAuthorities: [
        {
          name: "ca",
          directory: between.directory,
          agreeToTerms: true,
          roots: ca.roots,
          challenge: "http-01",
          holderAddress: own,
        },
      ],
      listeners: [
        { name: "http", address: own, port: ca.httpPort, protocol: "http" },
        { name: "https", address: own, port: ca.tlsPort, protocol: "https", tls },
      ],
      routes: [fixed("ok")],
    });
  }

  interface Host {
    readonly portico: Portico;
    readonly state: string;
    readonly control: string;
    ask(request: Parameters<typeof askMaster>[1]): Promise<ControlOutcome>;
    listed(): Promise<ListedCertificate>;
    /** Serial number of the certificate that a new connection gets. */
    served(): Promise<string>;
  }

  async function start(own: string): Promise<Host> {
    const folder = openFolder();
    for (const name of ["state", "run"]) mkdirSync(join(folder, name));
    const env = { STATE_DIRECTORY: join(folder, "state"), RUNTIME_DIRECTORY: join(folder, "run") };
    const portico = await Portico.start(config(own), { env });
    const control = join(folder, "run/control.sock");
    const ask: Host["ask"] = (request) => askMaster(control, request, 20_000);
    const host: Host = {
      portico,
      control,
      state: join(folder, "state/acme"),
      ask,
      listed: async () => {
        const outcome = await ask({ command: "certificates" });
        if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
        return outcome.value.certificates![0]!;
      },
      served: async () => {
        const options = { host: own, port: ca.tlsPort, servername: NAME, rejectUnauthorized: false };
        const socket = tls.connect(options);
        await once(socket, "secureConnect");
        const { raw } = socket.getPeerCertificate();
        socket.destroy();
        return new X509Certificate(raw).serialNumber;
      },
    };
    started.push(host);
    return host;
  }

  /** What `portico certificates` prints. */
  async function shown({ control }: Host): Promise<string> {
    let text = "";
    await run(["certificates", "--control", control], {
      out: (more) => void (text += more),
      err: (more) => void (text += more),
    });
    return text;
  }

  const shows = (host: Host, expected: object, what: string): Promise<void> =>
    eventually(
      async () => {
        const found: Partial<ListedCertificate> = await host.listed();
        return Object.entries(expected).every(
          ([key, value]) => found[key as keyof ListedCertificate] === value,
        );
      },
      what,
      { seen: () => host.portico.errors, everyMs: 200 },
    );

  test("only the one with the address asks; the other takes what is copied, and goes on when the address comes", async () => {
    const [ownA, ownB] = address.addresses;
    const [a, b] = [await start(ownA), await start(ownB)];
    await shows(a, { source: "temporary", state: "none", waitsFor: ownA }, "for the first to wait");
    await shows(b, { source: "temporary", state: "none", waitsFor: ownB }, "for the second to wait");
    expect(await shown(b)).toMatch(
      new RegExp(
        `files\\.example\\.net .* temporary, until ca issues one +waiting for the address ${ownB}\n$`,
      ),
    );
    const refused = await b.ask({ command: "renew" });
    expect(refused).toMatchObject({ ok: false, problems: [{ code: "acme.not-issued" }] });
    expect(JSON.stringify(refused)).toContain(`does not have the address ${ownB}`);
    expect(between.steps).toEqual([]);

    await ca.setAddress(NAME, ownA);
    address.moveTo(0);
    await shows(a, { source: "acme", state: "valid", waitsFor: undefined }, "for the first certificate");
    expect(await b.listed()).toMatchObject({ source: "temporary", waitsFor: ownB });
    expect(between.orders).toBe(1);

    const first = await a.served();
    const [pid, temporary] = [b.portico.pid, await b.served()];
    expect(temporary).not.toBe(first);
    copyState(a, b);
    await shows(b, { source: "acme", state: "valid", waitsFor: ownB }, "for the copy");
    expect([await b.served(), b.portico.pid]).toEqual([first, pid]);
    expect(b.portico.errors).toContain("taken from another host, issued by Pebble");

    await ca.setAddress(NAME, ownB);
    address.moveTo(1);
    await shows(
      b,
      { source: "acme", state: "valid", waitsFor: undefined },
      "for the second to have the address",
    );
    await shows(a, { source: "acme", state: "valid", waitsFor: ownA }, "for the first to wait again");
    expect(between.orders).toBe(1);
    expect(await b.ask({ command: "renew" })).toMatchObject({ ok: true });
    expect(between.orders).toBe(2);
    expect(between.steps.filter(({ path }) => path === NEW_ACCOUNT)).toHaveLength(1);

    const second = await b.served();
    expect(await a.served()).toBe(first);
    copyState(b, a);
    await eventually(async () => (await a.served()) === second, "for the copy back", {
      everyMs: 200,
    });
    expect(second).not.toBe(first);
    expect(between.orders).toBe(2);
  });
});

describe("two engines", () => {
  const SECONDS = 1_000;
  const DAY = 86_400 * SECONDS;
  let stage: Stage;
  const folders: string[] = [];
  const engines: AcmeEngine[] = [];
  /** With several profiles Pebble chooses one by chance. */
  const profiles = { default: { description: "three months", validityPeriod: (90 * DAY) / SECONDS } };
  let ca: TestCa;
  beforeAll(async () => (ca = await TestCa.start({ profiles })));
  afterAll(() => ca.stop());
  beforeEach(async () => (stage = await startStage({}, ca)));
  afterEach(async () => {
    await Promise.all(engines.splice(0).map((engine) => engine.stop()));
    await stage.stop();
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  function engine(): { readonly state: string; readonly certificates: AcmeEngine } {
    const state = mkdtempSync(join(tmpdir(), "portico-holder-"));
    folders.push(state);
    const certificates = new AcmeEngine(state, stage.host, stage.clock);
    engines.push(certificates);
    return { state, certificates };
  }

  const wantedBy = (host: 0 | 1, name = "a.example.net") =>
    stage.wanted([name], { authority: { holderAddress: address.addresses[host] } });

  /** Lets the clock run on until something is so. */
  const passing = (isSo: () => boolean, what: string): Promise<void> =>
    eventually(
      () => {
        stage.clock.advance(10 * SECONDS);
        return isSo();
      },
      what,
      { seen: () => stage.host.lines.join("\n"), everyMs: 20 },
    );

  test("an order under way ends after the address is lost, and none begins", async () => {
    const { between, host } = stage;
    address.moveTo(0);
    const { certificates } = engine();
    // Four are ordered at once.
    const all = ["a", "b", "c", "d", "e", "f"].map((name) => wantedBy(0, `${name}.example.net`));
    let finalized = 0;
    between.before = ({ path }) => {
      if (path.startsWith("/finalize-order") && finalized++ === 0) address.moveTo(undefined);
      return Promise.resolve();
    };
    certificates.lookAfter(all);
    await passing(() => host.installed.size === 4, "for the orders under way");
    await passing(
      () => certificates.status().every(({ waitsFor }) => waitsFor === address.addresses[0]),
      "for all to wait",
    );
    expect([between.orders, host.installed.size]).toEqual([4, 4]);
  });

  test("what another host ordered counts when the address comes back", async () => {
    const { between } = stage;
    address.moveTo(0);
    const [a, b] = [engine(), engine()];
    const [one, other] = [wantedBy(0), wantedBy(1)];
    a.certificates.lookAfter([one]);
    await issued(stage, one.id);
    copyState(a, b);
    address.moveTo(1);
    b.certificates.lookAfter([other]);
    await eventually(() => b.certificates.status()[0]!.state === "valid", "for the second to go on");
    // Four for the same names in a week; Let's Encrypt allows five.
    for (let renewal = 0; renewal < 3; renewal++)
      expect(await b.certificates.renewNow()).toMatchObject({ ok: true });
    await passing(() => a.certificates.status()[0]!.waitsFor !== undefined, "for the first to wait");
    copyState(b, a);
    address.moveTo(0);
    await passing(() => a.certificates.status()[0]!.waitsFor === undefined, "for the address to come back");
    const refused = await a.certificates.renewNow();
    expect(JSON.stringify(refused)).toContain("4 certificates for the same names in seven days");
    expect(between.orders).toBe(4);
    expect(between.steps.filter(({ path }) => path === NEW_ACCOUNT)).toHaveLength(1);
  });
});
