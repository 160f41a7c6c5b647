export { KubernetesFrontEnd } from "./frontEnd.js";
export type { KubernetesFrontEndProps, SharedTicketSecret, TlsSecret } from "./props.js";
export type {
  Autoscaling,
  Exposure,
  Manifest,
  ManifestMetadata,
  ServedVolume,
  PodResources,
  Toleration,
} from "../render/kubernetes/index.js";
