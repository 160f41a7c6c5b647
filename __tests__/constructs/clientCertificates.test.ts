import { App, TerraformStack } from "cdktf";
import { Application, type ClientCertificate, FrontEnd, Mode } from "../../src/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";

const CERTIFICATE = { ca: "/etc/portico/clients-ca.pem", names: ["alice"], userField: "Remote-User" };

function frontEnd(clientCertificate?: ClientCertificate, mode = Mode.tls()) {
  const stack = new TerraformStack(new App(), "s");
  const front = new FrontEnd(stack, "front", {
    host: { address: "192.0.2.10", publicName: "www.example.org" },
    mode,
  });
  const application = Application.server("http://127.0.0.1:9000");
  front.addSite("vault", { serverNames: ["vault.example.org"], application, clientCertificate });
  front.addSite("open", { serverNames: ["open.example.org"], application });
  return stack;
}

test("a site asks for certificates over https, and its redirect stays open", () => {
  const stack = frontEnd(CERTIFICATE);
  const asking = renderProxyConfig(stack).virtualServers.filter((one) => one.clientCertificate !== undefined);
  expect(asking.map(({ name, clientCertificate }) => [name, clientCertificate])).toEqual([
    ["vault", { ...CERTIFICATE, required: true }],
  ]);
  expect(resolve(stack, "http://vault.example.org/").kind).toBe("redirect");
  expect(resolve(stack, "https://open.example.org/").kind).toBe("proxy");
  const refusal = { policy: "vault", by: "clientCertificate", refusal: 403 };
  const url = "https://vault.example.org/";
  expect(resolve(stack, url)).toMatchObject({ kind: "error", status: 403, refusal });
  expect(resolve(stack, { url, certificateName: "bob" })).toMatchObject({ status: 403, refusal });
  const forged = { "Client-Cert": "x", "Remote-User": "root" };
  const found = resolve(stack, { url, certificateName: "alice", headers: forged });
  expect(found).toMatchObject({
    kind: "proxy",
    headers: { "client-cert": "(the certificate)", "remote-user": "alice" },
  });
});

test("without TLS it is refused, where it was given", () => {
  expect(() => frontEnd(CERTIFICATE, Mode.plain())).toThrow(
    /vault.*clientCertificate.*config\.client-certificate-without-tls/s,
  );
});
