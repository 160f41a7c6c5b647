import { App, TerraformStack, TerraformVariable } from "cdktf";
import { Delivery, Host, HostFile } from "../../src/index.js";
import { LATE_CONNECTION, typeOf } from "../../testkit/lateValues.js";

/**
 * Files for two hosts over ssh, by connections whose every text comes from a variable. It is planned, never applied,
 * and so needs no activation.
 */
const app = new App({ skipValidation: true });
const stack = new TerraformStack(app, "portico");

const variables = new Map(
  LATE_CONNECTION.map(({ name, good }) => [
    name,
    new TerraformVariable(stack, name, { type: typeOf(good), default: good }),
  ]),
);
const text = (name: string): string => variables.get(name)!.stringValue;

const files = new Host(stack, "files", {
  address: "192.0.2.9",
  delivery: Delivery.ssh({
    address: text("sshAddress"),
    port: 2222,
    user: text("sshUser"),
    sudo: true,
    hostKey: text("hostKey"),
    connectTimeoutSeconds: 60,
    scriptPath: text("scriptPath"),
    bastion: {
      address: text("gate"),
      user: text("gateUser"),
      hostKey: text("gateKey"),
    },
  }),
});
new HostFile(stack, "note", { host: files, path: "/etc/note", content: "note" });
const other = new Host(stack, "other", {
  address: "192.0.2.10",
  delivery: Delivery.ssh({ user: text("rootUser"), hostKey: text("hostKey") }),
});
new HostFile(stack, "otherNote", { host: other, path: "/etc/note", content: "note" });
app.synth();
