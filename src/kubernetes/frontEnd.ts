import { warn } from "../constructs/props/warn.js";
import { Construct } from "constructs";
import type * as provider from "./provider.js";
import type {
  ConfigMapV1,
  DeploymentV1,
  HorizontalPodAutoscalerV2,
  NetworkPolicyV1,
  PodDisruptionBudgetV1,
  ServiceV1,
} from "./provider.js";
import { freeId } from "../constructs/props/constructIds.js";
import { loaded } from "../constructs/providers/loaded.js";
import { escapeTemplate } from "../constructs/props/tokens.js";
import { formatProblem, type Problem, problem } from "../model/index.js";
import { proxyConfigText } from "../render/index.js";
import {
  frontEndManifests,
  type Manifest,
  manifestsText,
  providerArguments,
} from "../render/kubernetes/index.js";
import { frontEndInput } from "./input.js";
import { imageWarning } from "./names.js";
import { type KubernetesFrontEndProps, refuseFrontEndProps } from "./props.js";

/**
 * A front end in a Kubernetes cluster: pods that run a proxy, the Service of the pods, and the objects that keep the
 * pods running. Add everything to the proxy before.
 */
export class KubernetesFrontEnd extends Construct {
  /**
   * The objects as manifests, in the recommended order of creation: plain data, equal to the resources. You can apply
   * the manifests without Terraform.
   */
  readonly manifests: readonly Manifest[];
  /** The pods. */
  readonly deployment: DeploymentV1;
  /** The Service that clients connect to. */
  readonly service: ServiceV1;
  /** The config and small files, named by the hash of their content. */
  readonly configMap: ConfigMapV1;
  /** The runtime; undefined if the image contains the runtime. */
  readonly runtimeConfigMap?: ConfigMapV1;
  /** Limits how many pods may be missing while nodes are drained. */
  readonly disruptionBudget: PodDisruptionBudgetV1;
  /** Limits the clients and the targets of the pods; undefined with `networkPolicy: false`. */
  readonly networkPolicy?: NetworkPolicyV1;
  /** Adjusts the number of pods; undefined for a fixed number. */
  readonly autoscaler?: HorizontalPodAutoscalerV2;
  private readonly isComplete: () => boolean;
  private readonly resources: typeof provider;

  constructor(scope: Construct, id: string, props: KubernetesFrontEndProps) {
    super(scope, freeId(scope, id));
    refuseFrontEndProps(this, props);
    this.resources = loaded(
      this,
      "@cdktf/provider-kubernetes",
      // oxlint-disable-next-line typescript/no-require-imports -- Loading it late is the purpose.
      () => require("./provider.js") as typeof provider,
    );
    const { proxy } = props;
    const input = frontEndInput(this, props);
    this.manifests = frontEndManifests(input);
    const warning = imageWarning(props.image);
    if (warning !== undefined) warn(this, warning);

    const [config, runtime] = this.ofKind("ConfigMap");
    this.configMap = this.configMapOf("Config", config!);
    if (runtime !== undefined) this.runtimeConfigMap = this.configMapOf("Runtime", runtime);
    this.networkPolicy = this.resource("NetworkPolicy", this.resources.NetworkPolicyV1);
    this.service = this.resource("Service", this.resources.ServiceV1)!;
    this.deployment = this.resource("Deployment", this.resources.DeploymentV1)!;
    this.deployment.dependsOn = [this.configMap, this.runtimeConfigMap, this.networkPolicy]
      .filter((one) => one !== undefined)
      .map(({ terraformResourceType, friendlyUniqueId }) => `${terraformResourceType}.${friendlyUniqueId}`);
    this.disruptionBudget = this.resource("PodDisruptionBudget", this.resources.PodDisruptionBudgetV1)!;
    this.autoscaler = this.resource("HorizontalPodAutoscaler", this.resources.HorizontalPodAutoscalerV2);
    this.isComplete = () =>
      proxyConfigText(proxy.config) === input.config && proxy.files.size === input.files.size;
    this.node.addValidation({ validate: () => this.problems.map(formatProblem) });
  }

  /** Problems that appeared after the front end was created; empty if there are none. Synthesis checks for problems. */
  get problems(): readonly Problem[] {
    if (this.isComplete()) return [];
    return [
      problem(
        "kubernetes.changed-later",
        `${this.node.path}.proxy`,
        "was changed after the Kubernetes objects were made",
      ),
    ];
  }

  /** The manifests as the text of one file for `kubectl apply --server-side -f`: a List in JSON, which is YAML too. */
  get manifestsText(): string {
    return manifestsText(this.manifests);
  }

  private ofKind(kind: string): readonly Manifest[] {
    return this.manifests.filter((manifest) => manifest.kind === kind);
  }

  /**
   * A ConfigMap of another content is another resource, and the one before is destroyed only when the Deployment no
   * longer needs it: after a rollout that succeeded. While one is stuck, the pods before it can start again anywhere.
   */
  private configMapOf(id: string, manifest: Manifest): ConfigMapV1 {
    const hash = manifest.metadata.name.slice(-10);
    const lifecycle = { createBeforeDestroy: true };
    return new this.resources.ConfigMapV1(this, `${id}-${hash}`, {
      ...argumentsOf<"metadata">(manifest),
      lifecycle,
    });
  }

  private resource<T>(
    kind: string,
    type: new (scope: Construct, id: string, config: never) => T,
  ): T | undefined {
    const [manifest] = this.ofKind(kind);
    return manifest === undefined ? undefined : new type(this, kind, argumentsOf(manifest) as never);
  }
}

/** Arguments of a resource; texts are written as they are. */
function argumentsOf<K extends string>(manifest: Manifest): Record<K, object> {
  return escaped(providerArguments(manifest)) as Record<K, object>;
}

function escaped(value: unknown): unknown {
  if (typeof value === "string") return escapeTemplate(value);
  if (Array.isArray(value)) return value.map(escaped);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, escaped(item)]));
}
