import { TerraformVariable } from "cdktf";
import { refuse } from "../../src/constructs/props/checks.js";
import { newStack, problemsOf, synthesize } from "../../testkit/stacks.js";
import {
  Application,
  ContainerProxy,
  Firewall,
  type FirewallProps,
  formatProblem,
  FrontEnd,
  Host,
  Mode,
  type ProblemError,
  ReverseProxy,
} from "../../src/index.js";

/** What a stack says that it means: without the acknowledgement it is refused. */

const host = (stack = newStack(), sshPort?: number | false): Host =>
  new Host(stack, "host", { address: "192.0.2.10", sshPort });

describe("a firewall that leaves out the SSH server's port", () => {
  const codes = (props: Partial<FirewallProps>, sshPort?: number | false): string[] => {
    const stack = newStack();
    const at = host(stack, sshPort);
    try {
      new Firewall(stack, "firewall", { host: at, ports: [80], ...props });
      return [];
    } catch (error) {
      return (error as ProblemError).problems.map(({ code, path }) => `${path} ${code}`);
    }
  };

  test.each<[string, Partial<FirewallProps>, number | undefined]>([
    ["ports without it", {}, undefined],
    ["the same port of UDP", { allowed: [{ port: 22, protocol: "udp" }] }, undefined],
    ["another port of the server", { ports: [22, 80] }, 2222],
  ])("%s: refused, unless the stack says that it is meant", (_, props, sshPort) => {
    expect(codes(props, sshPort)).toEqual(["stack/firewall.ports firewall.locks-out"]);
    expect(codes({ ...props, acceptLockOut: true }, sshPort)).toEqual([]);
  });

  test.each<[string, Partial<FirewallProps>, false | undefined]>([
    ["open to everyone", { ports: [22, 80] }, undefined],
    ["open to some", { allowed: [{ port: 22, from: ["10.0.0.0/8"] }] }, undefined],
    ["no SSH server", {}, false],
  ])("%s: accepted", (_, props, sshPort) => expect(codes(props, sshPort)).toEqual([]));

  test("with ports from a function it is refused when the app is synthesized", () => {
    const stack = newStack();
    new Firewall(stack, "firewall", { host: host(stack), ports: () => [80] });
    expect(() => synthesize(stack)).toThrow(/stack\/firewall\.ports: .*\[firewall\.locks-out\]/);
  });

  test("a port that only Terraform knows may be the one", () => {
    const stack = newStack();
    const later = new TerraformVariable(stack, "port", { type: "number" }).numberValue;
    new Firewall(stack, "firewall", { host: host(stack), ports: [later] });
    expect(() => synthesize(stack)).not.toThrow();
  });
});

describe("everyone is trusted", () => {
  const EVERYONE = ["10.0.0.0/8", "10.0.0.0/08", "10.0.0.1", "::/0", "0.0.0.0/0", "::ffff:0:0/96"];
  const found = 'received: ["::/0","0.0.0.0/0","::ffff:0:0/96"]';

  test.each([
    ["by trustedProxies", { proxy: { trustedProxies: EVERYONE } }, "stack/files/Proxy.trustedProxies"],
    [
      "by the PROXY protocol",
      { mode: Mode.plain({ proxyProtocol: { from: EVERYONE } }) },
      "stack/files/Proxy/Listeners/http.proxyProtocol.from",
    ],
  ])("%s: refused, unless the stack says that it is meant", (_, props, path) => {
    const made = (trustEveryone?: boolean): FrontEnd =>
      new FrontEnd(newStack(), "files", {
        host: { address: "192.0.2.10" },
        mode: Mode.plain(),
        application: Application.fileSync({ installDirectory: "/srv/sync" }),
        service: { runtimeBundle: __filename },
        ...props,
        proxy: { ...("proxy" in props ? props.proxy : {}), trustEveryone },
      });
    const problems = problemsOf(() => refuse(made().proxy.problems));
    const text = problems.map(formatProblem).join("\n");
    expect(text).toContain(`${path}: matches every IPv4 or IPv6 address`);
    expect(text).toContain("[config.everyone-trusted]");
    expect(text.replace(/: +\[/g, ": [")).toContain(found);
    expect(text).toContain("`trustEveryone: true`");
    const { proxy } = made(true);
    expect(proxy.problems).toEqual([]);
    expect(JSON.stringify(proxy.config)).not.toContain("trustEveryone");
  });

  test("by an override, and in containers", () => {
    const stack = newStack();
    const proxy = new ReverseProxy(stack, "proxy", { host: host(stack) });
    const listeners = [proxy.addListener("http", { port: 80 })];
    proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    proxy.addConfigOverride("trustedProxies", ["0.0.0.0/0"]);
    expect(proxy.problems).toMatchObject([{ code: "config.everyone-trusted" }]);
    const containers = (trustEveryone: boolean) =>
      new ContainerProxy(stack, `c${trustEveryone}`, { trustedProxies: ["0.0.0.0/0"], trustEveryone });
    expect(problemsOf(() => containers(false))).toMatchObject([{ code: "config.everyone-trusted" }]);
    expect(() => containers(true)).not.toThrow();
  });
});
