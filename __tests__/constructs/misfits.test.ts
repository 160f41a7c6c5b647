import {
  Action,
  Activation,
  Application,
  ApplicationDaemons,
  ApplicationSettings,
  ContainerFrontEnd,
  ContainerProxy,
  Delivery,
  Firewall,
  formatProblem,
  FrontEnd,
  FrontEndPair,
  Host,
  HostFile,
  Mode,
  NodeRuntime,
  type Problem,
  ProblemError,
  ProxyService,
  ReverseProxy,
  StaticNetwork,
  SystemdUnit,
  TlsMaterial,
  TlsPolicy,
} from "../../src/index.js";
import { KubernetesFrontEnd } from "../../src/kubernetes/index.js";
import { LEAKS, site, type Site } from "./mistakes.js";

/** Every prop of everything that takes props, given what does not fit. */

// oxlint-disable-next-line typescript/no-explicit-any
type Props = any;
let calls = 0;
/** Calls share a site, which takes longest to make. */
const fresh = (): string => `x${++calls}`;
const made =
  (type: new (scope: never, id: string, props: never) => unknown) =>
  (s: Site, props: Props): unknown =>
    new type(s.stack as never, fresh(), props as never);
const CALLS: Readonly<Record<string, (s: Site, props: Props) => unknown>> = {
  ...Object.fromEntries(
    [
      Activation,
      ApplicationDaemons,
      ApplicationSettings,
      ContainerProxy,
      FrontEnd,
      ContainerFrontEnd,
      Firewall,
      FrontEndPair,
      Host,
      HostFile,
      KubernetesFrontEnd,
      ProxyService,
      ReverseProxy,
      StaticNetwork,
      SystemdUnit,
    ].map((type) => [type.name, made(type)]),
  ),
  addListener: (s, props) => s.proxy.addListener(fresh(), props),
  addVirtualServer: (s, props) => s.proxy.addVirtualServer(fresh(), props),
  addUpstream: (s, props) => s.proxy.addUpstream(fresh(), props),
  addRoute: (s, props) => s.server.addRoute(fresh(), props),
  configure: (s, props) => s.server.routes[0]!.configure(props),
  "Action.proxy": (s, props) => Action.proxy(s.app, props),
  "Action.staticFiles": (_, props) => Action.staticFiles("/srv/a", props),
  "Action.redirect": (_, props) => Action.redirect(props),
  "Action.respond": (_, props) => Action.respond(200, props),
  "Application.custom": (_, props) => Application.custom(props),
  "Application.gitea": (_, props) => Application.gitea(props),
  "Application.nextcloud": (_, props) => Application.nextcloud(props),
  "Application.radicale": (_, props) => Application.radicale(props),
  "Application.seafile": (_, props) => Application.seafile(props),
  "Application.vaultwarden": (_, props) => Application.vaultwarden(props),
  "Delivery.local": (_, props) => Delivery.local(props),
  "Delivery.ssh": (_, props) => Delivery.ssh(props),
  "Mode.plain": (_, props) => Mode.plain(props),
  "Mode.tls": (_, props) => Mode.tls(props),
  "NodeRuntime.pinned": (_, props) => NodeRuntime.pinned(props),
  "TlsMaterial.acme": (_, props) => TlsMaterial.acme(props),
  "TlsMaterial.fromFiles": (_, props) => TlsMaterial.fromFiles(props),
  "TlsMaterial.selfSigned": (_, props) => TlsMaterial.selfSigned(props),
  "TlsPolicy.custom": (_, props) => TlsPolicy.custom(props),
  "TlsPolicy.fileSync": (_, props) => TlsPolicy.fileSync(props),
};

function problems(make: () => unknown): readonly Problem[] {
  try {
    make();
  } catch (error) {
    if (error instanceof ProblemError) return error.problems;
    throw error;
  }
  return [];
}

function wellSaid(make: () => unknown): readonly Problem[] {
  const found = problems(make);
  const texts = found.map(formatProblem);
  expect(texts.join("\n")).not.toMatch(LEAKS);
  expect(new Set(texts).size).toBe(texts.length);
  return found;
}

class Odd {
  readonly hidden = new Map();
}
const MISFITS = [null, true, -7, 1.5, "\n", "", [], [[]], [null], {}, { zzz: 1 }, new Odd(), () => 1, 10n];

/** The props of a table, as the problem of a call without an object names them. */
const propsOf = (call: (s: Site, props: Props) => unknown): string[] =>
  /an object with (.*)/.exec(problems(() => call(site(), null))[0]!.allowed!)![1]!.split(", ");

/** What is looked at with the rest: by the route of an action, when a function is called, as a record of anything. */
const LATER =
  /^Action\.|^Activation\.describe|^FrontEndPair\.(?:responseHeaders|routeResponseHeaders|clientCertificate)|^KubernetesFrontEnd\.(?:tls|\w+Annotations)/;

describe.each(Object.entries(CALLS))("%s", (what, call) => {
  const names = propsOf(call);
  const shared = site();

  test("each prop with what does not fit has a message in our own words, once", () => {
    for (const name of names) for (const misfit of MISFITS) wellSaid(() => call(shared, { [name]: misfit }));
  });

  test("all that is wrong is said at once", () => {
    const wrong = (some: readonly string[]) => Object.fromEntries(some.map((name) => [name, new Odd()]));
    const said = (some: readonly string[]) =>
      wellSaid(() => call(shared, wrong(some))).map(({ path }) => path);
    const about = (name: string, paths: readonly string[]): boolean =>
      paths.some((path) => path.split(/[.[]/).includes(name));
    const refused = names.filter((name) => about(name, said([name])));
    const others = names.filter((name) => !refused.includes(name) && !LATER.test(`${what}.${name}`));
    expect(others).toEqual([]);
    expect(names.filter((name) => about(name, said(names)))).toEqual(refused);
  });

  test("a prop that there is not is refused", () => {
    const found = wellSaid(() => call(shared, { zzz: 1 })).map(
      ({ code, path }) => `${code} ${path.split(".").at(-1)}`,
    );
    expect(found).toContain("config.unknown-field zzz");
  });
});
