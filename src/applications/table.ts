import type { ApplicationDefinition } from "./definition.js";
import { fileSyncService } from "./fileSync.js";
import { fileSyncPaths } from "./fileSyncSettings.js";
import { nextcloud } from "./nextcloud.js";
import { gitea, immich, infiniteScale, openCloud, radicale, vaultwarden } from "./others.js";
import { seafile, SEAFILE_VERSIONS } from "./seafile.js";

/** Every entry, in each of its different forms, for tests and documents. */
export const APPLICATIONS: readonly ApplicationDefinition[] = [
  fileSyncService({ paths: fileSyncPaths(), media: { directory: "/srv/sync/media" } }),
  ...SEAFILE_VERSIONS.flatMap((version) => {
    const components = { notification: true, seadoc: true, thumbnail: version >= "13" };
    return [
      seafile({ version, layout: "host", components: { ...components, office: "onlyOffice" } }),
      ...(version === "11" ? [seafile({ version, prefix: "/seafile" })] : [seafile({ version, components })]),
    ];
  }),
  nextcloud({ push: true, office: "collabora" }),
  immich(),
  infiniteScale({ directory: "/srv/ocis" }),
  openCloud({ directory: "/srv/opencloud" }),
  vaultwarden({ directory: "/srv/vaultwarden" }),
  radicale(),
  gitea(),
];
