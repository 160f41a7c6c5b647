import type { Construct } from "constructs";
import { OwnResource } from "./ownResource.js";

/** Arguments have the provider's names in camel case. */
export class ConfigMapV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: object) {
    super(scope, id, "kubernetes_config_map_v1", config);
  }
}

export class DeploymentV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: object) {
    super(scope, id, "kubernetes_deployment_v1", config);
  }
}

export class HorizontalPodAutoscalerV2 extends OwnResource {
  constructor(scope: Construct, id: string, config: object) {
    super(scope, id, "kubernetes_horizontal_pod_autoscaler_v2", config);
  }
}

export class NetworkPolicyV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: object) {
    super(scope, id, "kubernetes_network_policy_v1", config);
  }
}

export class PodDisruptionBudgetV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: object) {
    super(scope, id, "kubernetes_pod_disruption_budget_v1", config);
  }
}

export class ServiceV1 extends OwnResource {
  constructor(scope: Construct, id: string, config: object) {
    super(scope, id, "kubernetes_service_v1", config);
  }
}
