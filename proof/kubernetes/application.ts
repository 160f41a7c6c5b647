/** What the front end proxies to: `upstream.ts` in a pod, behind a Service. */

export const APPLICATION = {
  name: "application",
  host: "application.files.svc.cluster.local",
  webPort: 8000,
  filesPort: 8082,
} as const;

export function applicationObjects(namespace: string): object[] {
  const { name, webPort, filesPort } = APPLICATION;
  const metadata = { name, namespace };
  const labels = { app: name };
  const ports = [
    { name: "web", port: webPort },
    { name: "files", port: filesPort },
  ];
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [
              {
                name,
                image: UPSTREAM_IMAGE,
                args: [String(webPort), String(filesPort)],
                ports: ports.map(({ port }) => ({ containerPort: port })),
                readinessProbe: { tcpSocket: { port: filesPort }, periodSeconds: 1 },
              },
            ],
          },
        },
      },
    },
    { apiVersion: "v1", kind: "Service", metadata, spec: { selector: labels, ports } },
  ];
}

/** A folder of the node as a volume, and the claim to it. */
export function mediaObjects(namespace: string, claim: string, folder: string): object[] {
  const size = { storage: "1Mi" };
  const spec = { storageClassName: "", accessModes: ["ReadOnlyMany"] };
  return [
    {
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: claim },
      spec: { ...spec, capacity: size, hostPath: { path: folder } },
    },
    {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: claim, namespace },
      spec: { ...spec, volumeName: claim, resources: { requests: size } },
    },
  ];
}

export const PROXY_IMAGE = "localhost/portico:1";
export const UPSTREAM_IMAGE = "localhost/upstream:1";
export const PAUSE_IMAGE = "localhost/pause:1";
