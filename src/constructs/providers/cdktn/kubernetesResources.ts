// Written by build/providerResources.ts from the provider's schema. Change that, not this file.
import type { TerraformMetaArguments } from "cdktf";
import type { Construct } from "constructs";
import { OwnResource } from "./ownResource.js";

export interface ConfigMapV1Config extends TerraformMetaArguments {
  readonly binaryData?: Readonly<Record<string, string>>;
  readonly data?: Readonly<Record<string, string>>;
  readonly immutable?: boolean;
  readonly metadata: object;
}

/** `kubernetes_config_map_v1` */
export class ConfigMapV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: ConfigMapV1Config) {
    super(scope, id, "kubernetes_config_map_v1", config, ["annotations", "binaryData", "data", "labels"]);
  }
}

export interface DeploymentV1Config extends TerraformMetaArguments {
  readonly waitForRollout?: boolean;
  readonly metadata: object;
  readonly spec: object;
  readonly timeouts?: object;
}

/** `kubernetes_deployment_v1` */
export class DeploymentV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: DeploymentV1Config) {
    super(scope, id, "kubernetes_deployment_v1", config, [
      "annotations",
      "labels",
      "limits",
      "matchLabels",
      "nodeSelector",
      "options",
      "requests",
      "volumeAttributes",
    ]);
  }
}

export interface HorizontalPodAutoscalerV2Config extends TerraformMetaArguments {
  readonly metadata: object;
  readonly spec: object;
}

/** `kubernetes_horizontal_pod_autoscaler_v2` */
export class HorizontalPodAutoscalerV2 extends OwnResource {
  constructor(scope: Construct, id: string, config: HorizontalPodAutoscalerV2Config) {
    super(scope, id, "kubernetes_horizontal_pod_autoscaler_v2", config, [
      "annotations",
      "labels",
      "matchLabels",
    ]);
  }
}

export interface NetworkPolicyV1Config extends TerraformMetaArguments {
  readonly metadata: object;
  readonly spec: object;
}

/** `kubernetes_network_policy_v1` */
export class NetworkPolicyV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: NetworkPolicyV1Config) {
    super(scope, id, "kubernetes_network_policy_v1", config, ["annotations", "labels", "matchLabels"]);
  }
}

export interface PodDisruptionBudgetV1Config extends TerraformMetaArguments {
  readonly metadata: object;
  readonly spec: object;
}

/** `kubernetes_pod_disruption_budget_v1` */
export class PodDisruptionBudgetV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: PodDisruptionBudgetV1Config) {
    super(scope, id, "kubernetes_pod_disruption_budget_v1", config, ["annotations", "labels", "matchLabels"]);
  }
}

export interface ServiceV1Config extends TerraformMetaArguments {
  readonly waitForLoadBalancer?: boolean;
  readonly metadata: object;
  readonly spec: object;
  readonly timeouts?: object;
}

/** `kubernetes_service_v1` */
export class ServiceV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: ServiceV1Config) {
    super(scope, id, "kubernetes_service_v1", config, ["annotations", "labels", "selector"]);
  }
}
