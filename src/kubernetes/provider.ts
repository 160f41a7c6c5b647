/** The Kubernetes provider's resources: a front end in a cluster loads them when it is made. */
export { ConfigMapV1 } from "@cdktf/provider-kubernetes/lib/config-map-v1";
export { DeploymentV1 } from "@cdktf/provider-kubernetes/lib/deployment-v1";
export { HorizontalPodAutoscalerV2 } from "@cdktf/provider-kubernetes/lib/horizontal-pod-autoscaler-v2";
export { NetworkPolicyV1 } from "@cdktf/provider-kubernetes/lib/network-policy-v1";
export { PodDisruptionBudgetV1 } from "@cdktf/provider-kubernetes/lib/pod-disruption-budget-v1";
export { ServiceV1 } from "@cdktf/provider-kubernetes/lib/service-v1";
