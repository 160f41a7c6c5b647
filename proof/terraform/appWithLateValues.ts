import { App, TerraformOutput, type TerraformStack, TerraformVariable } from "cdktf";
import { dnsRecordsOutput } from "../../src/constructs/host/host.js";
import { Host } from "../../src/index.js";
import { lateStack } from "../../testkit/lateStack.js";
import { LATE_RECORDS } from "../../testkit/lateValues.js";

const app = new App();
const stack = lateStack(app, process.env.PORTICO_ROOT!);
addRecords(stack);
app.synth();

/** Hosts of which only addresses matter: one output for each, so that one apply is enough for all. */
function addRecords(stack: TerraformStack): void {
  LATE_RECORDS.forEach(({ address, ipv6 }, i) => {
    const host = new Host(stack, `records-of-${i}`, {
      address: variable(stack, `recordsAddress${i}`, address),
      ipv6Address: variable(stack, `recordsIpv6${i}`, ipv6),
      publicName: "files.example.org",
    });
    new TerraformOutput(stack, `recordsOf${i}`, { value: dnsRecordsOutput(host) });
  });
}

function variable(stack: TerraformStack, name: string, value: string): string {
  return new TerraformVariable(stack, name, { type: "string", default: value }).stringValue;
}
