export * from "./definition.js";
export * from "./fileSync.js";
export * from "./fileSyncSettings.js";
export * from "./frontEndExpectations.js";
export { nextcloud, type NextcloudOptions, type NextcloudPart, type NextcloudRoute } from "./nextcloud.js";
export type { Office, OfficeRoute } from "./pieces.js";
export {
  type ComposeOptions,
  gitea,
  type GiteaOptions,
  immich,
  infiniteScale,
  openCloud,
  radicale,
  vaultwarden,
} from "./others.js";
export { ofSite } from "./ofSite.js";
export { ordinaryServer, redirected, servedFiles } from "./ordinary.js";
export {
  seafile,
  SEAFILE_VERSIONS,
  type SeafileComponents,
  type SeafileOptions,
  type SeafilePart,
  type SeafileRoute,
} from "./seafile.js";
export { APPLICATIONS } from "./table.js";
