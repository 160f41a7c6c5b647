import { providerArguments } from "../../src/render/kubernetes/providerBlocks.js";

test.each([
  "annotations",
  "binaryData",
  "data",
  "labels",
  "limits",
  "matchLabels",
  "nodeSelector",
  "requests",
])("names in %s are data: they stay, whatever fields are called", (map) => {
  const metadata = { name: "x", namespace: "y", labels: {} };
  const names = { containers: "a", ports: "b", volumes: "c" };
  const manifest = { apiVersion: "v1", kind: "ConfigMap", metadata, [map]: names };
  expect(providerArguments(manifest)).toEqual({ metadata, [map]: names });
});
