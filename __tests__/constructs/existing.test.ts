import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  App,
  DataResource,
  DataTerraformRemoteStateLocal,
  type TerraformStack,
  TerraformVariable,
} from "cdktf";
import { Construct } from "constructs";
import {
  Action,
  Activation,
  Application,
  ContainerProxy,
  FrontEnd,
  Host,
  type HostFile,
  type HostPaths,
  type IContainerProxy,
  type IHost,
  type IListener,
  type IProxyService,
  type IReverseProxy,
  type IUpstream,
  type IVirtualServer,
  type Listener,
  Mode,
  ProxyService,
  ReverseProxy,
  type SystemdUnit,
  TlsMaterial,
  Upstream,
  type UpstreamInput,
  type VirtualServer,
} from "../../src/index.js";
import { KubernetesFrontEnd } from "../../src/kubernetes/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

/** What is there already, or is somebody else's: parts that props take by their interfaces. */

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

function newApp(): App {
  const outdir = mkdtempSync(join(tmpdir(), "portico-existing-"));
  folders.push(outdir);
  return new App({ outdir });
}

/** What Terraform gets of each stack, as text without the backslashes of texts in texts. */
function synthesized(app: App): (stack: TerraformStack) => string {
  app.synth();
  return ({ node }) => {
    const file = join(app.outdir, "stacks", node.id, "cdk.tf.json");
    return readFileSync(file, "utf8").replaceAll("\\", "");
  };
}

function serverOn(host: IHost, stack: TerraformStack): VirtualServer {
  const proxy = new ReverseProxy(stack, "proxy", { host });
  const listeners = [proxy.addListener("http", { port: 80 })];
  return proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
}

describe("an upstream", () => {
  test("of another stack of the app goes into the config of this one", () => {
    const app = newApp();
    const [services, edge] = [newStack("services", app), newStack("edge", app)];
    const machine = new DataResource(services, "machine");
    const office = new Upstream(services, "office", { url: machine.id });
    const host = new Host(edge, "host", { address: "192.0.2.10" });
    serverOn(host, edge).addRoute("office", { path: "/", action: Action.proxy(office) });
    const read = synthesized(app);
    const name = "cross-stack-output-terraform_datamachineid";
    const output = `data.terraform_remote_state.cross-stack-reference-input-services.outputs.${name}`;
    expect(read(services)).toContain(`"${name}"`);
    expect(read(edge)).toContain(`"url": \${jsonencode(${output})}`);
  });

  test("that somebody else runs is known by its URL, such as an output of another app", () => {
    const stack = newStack();
    const theirs = new DataTerraformRemoteStateLocal(stack, "theirs", { path: "../theirs.tfstate" });
    const office = Upstream.fromUrl(stack, "office", theirs.getString("office_url"));
    const host = new Host(stack, "host", { address: "192.0.2.10" });
    serverOn(host, stack).addRoute("office", { path: "/", action: Action.proxy(office) });
    const resources = JSON.stringify(synthesize(stack).resource);
    expect(resources).toContain("${jsonencode(data.terraform_remote_state.theirs.outputs.office_url)}");
    expect(problemsOf(() => Upstream.fromUrl(stack, "bad", "office:80"))).toMatchObject([
      { code: "config.bad-url", path: "stack/bad.url", received: '"office:80"' },
    ]);
  });

  test("can be a construct of one's own", () => {
    class Office extends Construct implements IUpstream {
      readonly name = "office";
      readonly urls = ["http://10.0.0.7:8000"];
      readonly url = "http://10.0.0.7:8000";

      render(): UpstreamInput {
        return { name: this.name, url: this.url, readTimeoutMs: 1000 };
      }
    }
    const stack = newStack();
    const office = new Office(stack, "office");
    const server = serverOn(new Host(stack, "host", { address: "192.0.2.10" }), stack);
    server.addRoute("office", { path: "/", action: Action.proxy(office) });
    const { upstreams } = renderProxyConfig(stack);
    expect(upstreams).toEqual([expect.objectContaining({ name: "office", readTimeoutMs: 1000 })]);
  });

  test("is no other construct", () => {
    const other = new Host(newStack(), "host", { address: "192.0.2.10" });
    expect(problemsOf(() => Action.proxy(other as never))).toMatchObject([
      { code: "config.wrong-type", path: "Action.proxy.upstream", received: '"an instance of Host"' },
    ]);
  });
});

describe("a host", () => {
  test("that somebody else made is known by its address, which another resource has", () => {
    const stack = newStack();
    const machine = new DataResource(stack, "machine");
    const host = Host.fromAddress(stack, "host", machine.id, {
      publicName: "app.example.org",
    });
    const { url } = new FrontEnd(stack, "app", {
      host,
      mode: Mode.plain(),
      application: Application.server("http://127.0.0.1:3000"),
    }).site;
    expect(url).toBe("http://app.example.org/");
    expect(host.serverNames).toEqual(["app.example.org"]);
    // The host checks the address when Terraform knows the address.
    expect(JSON.stringify(synthesize(stack).resource)).toContain("host.bad-ipv4");
    expect(problemsOf(() => Host.fromAddress(stack, "bad", "host.example"))).toMatchObject([
      { code: "host.bad-ipv4", path: "stack/bad.address" },
    ]);
  });
});

describe("a proxy", () => {
  test("and what runs it can be constructs of one's own", () => {
    const stack = newStack();
    const host = new Host(stack, "host", { address: "192.0.2.10" });
    const edge = new Edge(stack, "edge", host);
    edge.own.addRoute("office", { path: "/", action: Action.redirect({ port: 443 }) });
    const service = new EdgeService(stack, "service", edge);
    const { deployment } = new Activation(stack, "activation", { service });
    expect(deployment).toMatchObject({
      config: "/etc/portico/portico.json",
      services: { proxy: { service: "portico.service", socket: "portico.socket" } },
    });
    expect(JSON.stringify(synthesize(stack))).toContain("portico-doctor.timer");
    expect(problemsOf(() => new ProxyService(stack, "other", { proxy: service as never }))).toMatchObject([
      { code: "config.wrong-type", path: "stack/other.proxy", received: '"an instance of EdgeService"' },
    ]);
  });

  test("has listeners that can be constructs of one's own, which stand for its own by name", () => {
    class Internal extends Construct implements IListener {
      readonly name = "internal";
      readonly address = "10.0.0.1";
      readonly port = 8443;
      readonly protocol = "https" as const;
    }
    const stack = newStack();
    const proxy = new ReverseProxy(stack, "proxy", {
      host: new Host(stack, "host", { address: "192.0.2.10" }),
    });
    const material = TlsMaterial.selfSigned();
    proxy.addListener("internal", { address: "10.0.0.1", port: 8443, tls: { material } });
    const listeners = [new Internal(stack, "listener")];
    const own = TlsMaterial.fromFiles({ certificate: "/etc/own/own.crt", key: "/etc/own/own.key" });
    const server = proxy.addVirtualServer("site", {
      serverNames: ["a.example"],
      listeners,
      default: true,
      tls: own,
    });
    server.addRoute("all", { path: "/", action: Action.respond(204) });
    expect(proxy.problems).toEqual([]);
    expect(proxy.config).toMatchObject({
      listeners: [{ tls: { certificates: [{ certificate: "/etc/own/own.crt" }] } }],
      virtualServers: [{ listeners: ["internal"] }],
    });
  });

  test("in containers can be a construct of one's own", () => {
    const stack = newStack();
    const proxy = new Inside(stack, "inside");
    const frontEnd = new KubernetesFrontEnd(stack, "pods", {
      namespace: "edge",
      proxy,
      image: "registry.example.org/portico:1",
      networkPolicy: false,
    });
    expect(frontEnd.problems).toEqual([]);
    expect(frontEnd.manifestsText).toContain("inside.example.org");
  });
});

/** A proxy with what all proxies of a firm have. */
class Edge extends Construct implements IReverseProxy {
  readonly own: VirtualServer;
  readonly host: IHost;
  readonly paths: HostPaths;
  readonly configFile: HostFile;
  private readonly proxy: ReverseProxy;

  constructor(scope: Construct, id: string, host: IHost) {
    super(scope, id);
    const proxy = new ReverseProxy(this, "Proxy", { host });
    this.proxy = proxy;
    this.own = proxy.addVirtualServer("site", {
      serverNames: ["_"],
      listeners: [proxy.addListener("http", { port: 80 })],
      default: true,
    });
    [this.host, this.paths, this.configFile] = [host, proxy.paths, proxy.configFile];
  }

  get config(): IReverseProxy["config"] {
    return this.proxy.config;
  }

  get listeners(): readonly Listener[] {
    return this.proxy.listeners;
  }

  get virtualServers(): readonly VirtualServer[] {
    return this.proxy.virtualServers;
  }

  get upstreams(): readonly IUpstream[] {
    return this.proxy.upstreams;
  }
}

class EdgeService extends Construct implements IProxyService {
  readonly host: IHost;
  readonly config: HostFile;
  readonly nodePath: string;
  readonly runtime: HostFile;
  readonly serviceUnit: SystemdUnit;
  readonly socketUnit: SystemdUnit;

  constructor(
    scope: Construct,
    id: string,
    readonly proxy: IReverseProxy,
  ) {
    super(scope, id);
    const service = new ProxyService(this, "Service", { proxy });
    [this.host, this.config, this.nodePath] = [service.host, service.config, service.nodePath];
    [this.runtime, this.serviceUnit, this.socketUnit] = [
      service.runtime,
      service.serviceUnit,
      service.socketUnit,
    ];
  }
}

class Inside extends Construct implements IContainerProxy {
  private readonly proxy = new ContainerProxy(this, "Proxy");
  readonly files = this.proxy.files;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const listeners = [this.proxy.addListener("http", { port: 8080 })];
    const serverNames = ["inside.example.org"];
    const server = this.proxy.addVirtualServer("inside", { serverNames, listeners, default: true });
    server.addRoute("all", { path: "/", action: Action.respond(204) });
  }

  get config(): IContainerProxy["config"] {
    return this.proxy.config;
  }

  get listeners(): readonly Listener[] {
    return this.proxy.listeners;
  }

  get virtualServers(): readonly VirtualServer[] {
    return this.proxy.virtualServers;
  }

  get upstreams(): readonly IUpstream[] {
    return this.proxy.upstreams;
  }
}

test("a function adds routes to any virtual server", () => {
  const addOffice = (server: IVirtualServer, upstream: IUpstream): void => {
    server.addRoute("office", { path: "/office", action: Action.proxy(upstream) });
  };
  const stack = newStack();
  const { site, proxy } = new FrontEnd(stack, "app", {
    host: Host.fromAddress(stack, "host", "192.0.2.10"),
    mode: Mode.plain(),
    application: Application.server("http://127.0.0.1:3000"),
  });
  addOffice(site.virtualServer, proxy.addUpstream("office", { url: "http://10.0.0.7:8000" }));
  expect(resolve(stack, "http://192.0.2.10/office/x")).toMatchObject({ route: "office" });
});

describe("an action that names a URL", () => {
  const URL_8000 = "http://127.0.0.1:8000";
  const parts = () => {
    const stack = newStack();
    const proxy = new ReverseProxy(stack, "proxy", { host: Host.fromAddress(stack, "host", "192.0.2.10") });
    const listeners = [proxy.addListener("http", { port: 80 })];
    const site = proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    return { stack, proxy, site };
  };
  const routesOf = ({ config }: ReverseProxy): unknown =>
    config.virtualServers[0]!.routes.map(({ name, action }) => [name, action]);

  test("makes an upstream of the route's proxy, which routes with the same URL share", () => {
    const { stack, proxy, site } = parts();
    const other = new ReverseProxy(stack, "other", { host: Host.fromAddress(stack, "b", "192.0.2.11") });
    const action = Action.proxy(URL_8000, { strip: "raw" });
    const first = site.addRoute("a", { path: "/a", action });
    const again = site.addRoute("b", { path: "/b", action: Action.proxy(URL_8000) });
    site.addRoute("c", { path: "/c", action: Action.proxy("unix:/run/app.sock") });
    expect(proxy.config.upstreams).toEqual([
      { name: "127.0.0.1-8000", url: URL_8000 },
      { name: "run-app.sock", url: "unix:/run/app.sock" },
    ]);
    expect(routesOf(proxy)).toEqual([
      ["a", { type: "proxy", upstream: "127.0.0.1-8000", strip: "raw" }],
      ["b", { type: "proxy", upstream: "127.0.0.1-8000" }],
      ["c", { type: "proxy", upstream: "run-app.sock" }],
    ]);
    expect(first.action.upstream).toBe(again.action.upstream);
    expect(proxy.problems).toEqual([]);
    // The action itself belongs to no proxy.
    const listeners = [other.addListener("http", { port: 80 })];
    const elsewhere = other.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    elsewhere.addRoute("a", { path: "/", action });
    expect(other.upstreams).not.toContain(first.action.upstream);
    expect(other.config.upstreams).toEqual([{ name: "127.0.0.1-8000", url: URL_8000 }]);
    expect(() => synthesize(stack)).not.toThrow();
  });

  test("gives it a name that no other has, and leaves an upstream of one's own alone", () => {
    const { proxy, site } = parts();
    const own = proxy.addUpstream("127.0.0.1-8000", { url: URL_8000, readTimeoutMs: 5 });
    site.addRoute("own", { path: "/own", action: Action.proxy(own) });
    for (const [i, url] of [URL_8000, "https://127.0.0.1:8000"].entries())
      site.addRoute(`r${i}`, { path: `/${i}`, action: Action.proxy(url) });
    expect(proxy.config.upstreams!.map(({ name, url }) => [name, url])).toEqual([
      ["127.0.0.1-8000", URL_8000],
      ["127.0.0.1-8000-2", URL_8000],
      ["127.0.0.1-8000-3", "https://127.0.0.1:8000"],
    ]);
  });

  test("of a resource makes an upstream that is named after the route", () => {
    const { stack, proxy, site } = parts();
    const url = new TerraformVariable(stack, "url", { type: "string" }).stringValue;
    site.addRoute("app", { path: "/", action: Action.proxy(url) });
    expect(proxy.config.upstreams).toMatchObject([{ name: "app" }]);
    expect(proxy.problems).toEqual([]);
  });

  test("is refused at the route for a bad URL; without its route, the proxy has no such upstream", () => {
    const url = "127.0.0.1:8000";
    const add = (): unknown => parts().site.addRoute("app", { path: "/app", action: Action.proxy(url) });
    const { proxy, site } = parts();
    expect(problemsOf(add)).toMatchObject([
      {
        code: "config.bad-url",
        path: `${site.node.path}/app.action.upstream`,
        received: JSON.stringify(url),
      },
    ]);
    const route = site.addRoute("page", { path: "/", action: Action.proxy(URL_8000) });
    const replace = (): void => route.replaceAction(Action.proxy("http://app:8000/path"));
    expect(problemsOf(replace)).toMatchObject([
      { code: "config.bad-url", path: `${site.node.path}/page.action.upstream` },
    ]);
    route.replaceAction(Action.proxy("http://127.0.0.1:9000"));
    expect(proxy.config.upstreams).toEqual([{ name: "127.0.0.1-9000", url: "http://127.0.0.1:9000" }]);
    route.remove();
    expect(proxy.config.upstreams).toEqual([]);
  });
});
