import { isDeepStrictEqual } from "node:util";
import type { Construct } from "constructs";
import { parseConfig, type Problem, problem, ProblemError } from "../../model/index.js";
import { CONTAINER_PATHS, dhParametersPem, proxyConfigText, renderComposeFile } from "../../render/index.js";
import { containerProblems } from "./containerProblems.js";
import { hostPathProblems, refuse } from "../props/checks.js";
import { listOf, type PropTable, refuseOptions, refuseProps, required, text } from "../props/propTable.js";
import type { IContainerProxy } from "./proxyInterfaces.js";
import { PROXY_SETTINGS, type ProxySettings, settingsProblems } from "./proxySettings.js";
import { ReverseProxyBase } from "./reverseProxyBase.js";
import type { TlsPlace } from "./tlsMaterial.js";

/**
 * A proxy in containers: the same listeners, virtual servers and upstreams as a `ReverseProxy`, without a host. The
 * proxy delivers no files; the tool that runs the containers uses `config` and `files`.
 */
export class ContainerProxy extends ReverseProxyBase implements IContainerProxy {
  private readonly own: ProxySettings;
  private given: ProxySettings | undefined;
  private readonly contents = new Map<string, string>();

  constructor(scope: Construct, id: string, props: ContainerProxyProps = {}) {
    super(scope, id);
    refuseProps(this, props, PROXY_SETTINGS, (fit) => settingsProblems(this.node.path, fit));
    this.own = props;
  }

  /** @internal */
  protected get settings(): ProxySettings {
    const { own, given = {} } = this;
    const logs = { access: { stream: "stdout" }, error: { stream: "stderr" }, ...own.logs } as const;
    const timeouts = { ...given.timeouts, ...own.timeouts };
    const limits = { ...given.limits, ...own.limits };
    return {
      ...given,
      ...own,
      logs,
      ...(Object.keys(timeouts).length === 0 ? {} : { timeouts }),
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
    };
  }

  /**
   * @internal Settings that follow from how its containers are run; its own take priority.
   *
   * @returns whether it has them now: only the first settings are used, because it runs in one way
   */
  give(settings: ProxySettings): boolean {
    refuse(settingsProblems(this.node.path, settings));
    this.given ??= settings;
    return isDeepStrictEqual(this.given, settings);
  }

  /** Adds a small file that containers need besides the config, such as an error page. Not for secrets. */
  addFile(path: string, content: string): void {
    const at = `${this.node.path}.addFile`;
    const both = { path: required(text), content: required(text) };
    refuseOptions(at, { path, content }, both, (fit) => hostPathProblems({ path: fit.path }, at));
    if (this.contents.has(path) || path === CONTAINER_PATHS.config) {
      const fix = "Use another path for the file.";
      refuse([
        problem("files.duplicate-path", at, "is already a file of the proxy", { received: path, fix }),
      ]);
    }
    this.contents.set(path, content);
  }

  get files(): ReadonlyMap<string, string> {
    return this.contents;
  }

  /**
   * Files for running the proxy with `docker compose` beside the application's Compose file, in place of the proxy in
   * that file: `portico.yml`, and mounted files below `portico/`. The paths are relative to the directory of the
   * application's file; write the files there. A certificate from files must be in `portico/etc/portico/tls`.
   */
  composeFiles(options: ComposeFileOptions): ReadonlyMap<string, string> {
    refuseOptions(`${this.node.path}.composeFiles`, options, COMPOSE_FILE_OPTIONS);
    const { image, networks = [], volumes = [] } = options;
    const allowed = "the image and its tag, such as portico:1";
    if (image.trim() === "")
      refuse([
        problem("config.wrong-type", `${this.node.path}.composeFiles.image`, "is empty", {
          received: image,
          allowed,
        }),
      ]);
    refuse(this.problems);
    // The JSON has no undefined fields, like the file.
    const parsed = parseConfig(JSON.parse(JSON.stringify(this.config)));
    if (!parsed.ok) throw new ProblemError(parsed.problems);
    refuse(
      containerProblems(this, parsed.value, {
        area: "compose",
        mounted: [...volumes.map(mountPath), CONTAINER_PATHS.tlsDirectory],
        words: {
          lacking: "the container does not have",
          itself: "the container itself",
          url: "the URL of a service of the Compose file, or of another host",
          volumes: "one of the `volumes`",
        },
      }),
    );
    const files = new Map([[CONTAINER_PATHS.config as string, proxyConfigText(this.config)], ...this.files]);
    return new Map([
      ["portico.yml", renderComposeFile({ image, config: parsed.value, networks, volumes, files })],
      ...[...files].map(([path, content]) => [`portico${path}`, content] as const),
    ]);
  }

  /** @internal */
  protected override placeProblems(): readonly Problem[] {
    return this.directoryProblems([CONTAINER_PATHS.config, CONTAINER_PATHS.tlsDirectory]);
  }

  /** @internal */
  protected override tlsPlace(): TlsPlace {
    return { directory: CONTAINER_PATHS.tlsDirectory, dhParameters: () => this.dhParameters() };
  }

  private dhParameters(): string {
    if (!this.contents.has(CONTAINER_PATHS.dhParameters)) {
      this.addFile(CONTAINER_PATHS.dhParameters, dhParametersPem());
    }
    return CONTAINER_PATHS.dhParameters;
  }

  /** @internal */
  override onThisMachine(): undefined {
    return undefined;
  }
}

/** The path of a mount in the container: the second part of `./media:/srv/media:ro`, or the only part. */
const mountPath = (volume: string): string => {
  const [source = "", target = source] = volume.split(":");
  return target.replace(/(?!^)\/+$/, "");
};

/** Settings of a proxy that runs in containers. */
export type ContainerProxyProps = ProxySettings;

/** Options of a proxy beside the services of a Compose file. */
export interface ComposeFileOptions {
  /** Image of the proxy, built from the package's `Containerfile`. */
  readonly image: string;
  /**
   * Networks of the application's servers, by their keys in the application's Compose file.
   * @default - the network that Compose creates for services without networks
   */
  readonly networks?: readonly string[];
  /**
   * Further mounts, in the syntax of Compose: `./media:/srv/media:ro`.
   * @default - the config, the files in the config, the certificate, and a volume for certificates by ACME
   */
  readonly volumes?: readonly string[];
}

const COMPOSE_FILE_OPTIONS: PropTable<ComposeFileOptions> = {
  image: required(text),
  networks: listOf(text),
  volumes: listOf(text),
};
