import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { inflateSync } from "node:zlib";
import { App, TerraformStack } from "cdktf";
import { layOut } from "../../demo/layOut.js";
import { createMedia, MEDIA_FILES } from "../../demo/media.js";
import { Application, Delivery, FrontEnd, Mode } from "../../src/index.js";
import { parseDeploymentText } from "../../src/model/index.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "portico lay out "));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a stack with these resources and lays it out below `host`. */
async function apply(resource: Record<string, Record<string, object>>) {
  const stack = path.join(folder, "stacks", "portico");
  mkdirSync(path.join(stack, "assets"), { recursive: true });
  writeFileSync(path.join(stack, "assets", "portico.mjs"), "#!/usr/bin/env node\n");
  const file = path.join(stack, "cdk.tf.json");
  writeFileSync(file, JSON.stringify({ terraform: {}, resource }));
  return layOut(file, path.join(folder, "host"));
}

const host = (...names: string[]): string => path.join(folder, "host", ...names);
const mode = (file: string): string => (statSync(file).mode & 0o7777).toString(8);

const KEY = { algorithm: "RSA", rsa_bits: 2048 };
const CERTIFICATE = {
  private_key_pem: "${tls_private_key.key.private_key_pem}",
  validity_period_hours: 87_600,
  dns_names: ["files.example.org"],
  ip_addresses: ["192.0.2.10", "2001:db8::10"],
  allowed_uses: ["digital_signature", "key_encipherment", "server_auth"],
  subject: [{ common_name: "files.example.org", organization: "Example, Inc." }],
};

describe("layOut", () => {
  test("lays out a stack with an activation, whose document has the hash of each file", async () => {
    const app = new App({ outdir: path.join(folder, "cdktf.out") });
    const stack = new TerraformStack(app, "portico");
    const runtimeBundle = path.join(folder, "portico.mjs");
    writeFileSync(runtimeBundle, "// the runtime");
    new FrontEnd(stack, "files", {
      host: { address: "127.0.0.1", delivery: Delivery.local({ root: host() }) },
      mode: Mode.plain(),
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
      service: { runtimeBundle },
      activation: {},
    });
    app.synth();
    await layOut(path.join(folder, "cdktf.out/stacks/portico/cdk.tf.json"), host());
    const document = parseDeploymentText(readFileSync(host("etc/portico/deployment.json"), "utf8"));
    if (!document.ok) throw new Error(JSON.stringify(document.problems));
    const { files } = document.value;
    expect(files.length).toBeGreaterThan(8);
    for (const { path: file, sha256 } of files)
      expect([
        file,
        createHash("sha256")
          .update(readFileSync(host(file)))
          .digest("hex"),
      ]).toEqual([file, sha256]);
  });

  test("writes contents and assets with their modes, whatever the umask and earlier runs", async () => {
    const umask = process.umask(0o077);
    try {
      const resources = {
        local_file: {
          config: {
            filename: host("etc/portico/portico.json"),
            content: '{"a": "$${HOME} %%{ if } $1 $$"}\n',
            file_permission: "0644",
            directory_permission: "0755",
            lifecycle: { create_before_destroy: true, note: "${not.evaluated.here}" },
          },
          runtime: {
            filename: host("usr/lib/portico/portico.mjs"),
            source: "assets/portico.mjs",
            file_permission: "0755",
            directory_permission: "0755",
          },
          bytes: {
            filename: host("bytes"),
            content_base64: "AP8=",
            file_permission: "0600",
            directory_permission: "0755",
          },
        },
        terraform_data: { activate: { input: "${whatever.it.is}" } },
      };
      await apply(resources);
      writeFileSync(host("bytes"), "changed by hand");
      expect(await apply(resources)).toHaveLength(3);
    } finally {
      process.umask(umask);
    }
    expect(readFileSync(host("etc/portico/portico.json"), "utf8")).toBe('{"a": "${HOME} %{ if } $1 $$"}\n');
    expect(readFileSync(host("usr/lib/portico/portico.mjs"), "utf8")).toBe("#!/usr/bin/env node\n");
    expect(readFileSync(host("bytes"))).toEqual(Buffer.from([0, 255]));
    expect(
      ["etc/portico/portico.json", "usr/lib/portico/portico.mjs", "bytes"].map((f) => mode(host(f))),
    ).toEqual(["644", "755", "600"]);
    expect(["", "etc", "etc/portico", "usr/lib"].map((d) => mode(host(d)))).toEqual([
      "755",
      "755",
      "755",
      "755",
    ]);
  });

  test("creates the key once, and a certificate as its resource says", async () => {
    await apply({
      tls_private_key: { key: KEY },
      tls_self_signed_cert: { certificate: CERTIFICATE },
      local_sensitive_file: {
        key: {
          filename: host("tls/privkey.pem"),
          content: "${tls_private_key.key.private_key_pem}",
          file_permission: "0600",
        },
      },
      local_file: {
        certificate: {
          filename: host("tls/cacert.pem"),
          content: "${tls_self_signed_cert.certificate.cert_pem}",
          file_permission: "0644",
        },
      },
    });
    const key = createPrivateKey(readFileSync(host("tls/privkey.pem")));
    const certificate = new X509Certificate(readFileSync(host("tls/cacert.pem")));
    expect(key.asymmetricKeyDetails).toMatchObject({ modulusLength: 2048 });
    expect(mode(host("tls/privkey.pem"))).toBe("600");
    expect(certificate.checkPrivateKey(key)).toBe(true);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.subject).toBe("O=Example\\, Inc.\nCN=files.example.org");
    expect(certificate.subjectAltName).toBe(
      "DNS:files.example.org, IP Address:192.0.2.10, IP Address:2001:DB8:0:0:0:0:0:10",
    );
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    expect(certificate.ca).toBe(false);
    const days = (Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)) / 86_400_000;
    expect(days).toBe(3650);
  });

  test("ECDSA keys and certificates of a subject without alternatives", async () => {
    await apply({
      tls_private_key: { key: { algorithm: "ECDSA", ecdsa_curve: "P384" } },
      tls_self_signed_cert: {
        certificate: {
          private_key_pem: "${tls_private_key.key.private_key_pem}",
          validity_period_hours: 1,
          allowed_uses: [],
          subject: { common_name: "a" },
        },
      },
      local_file: {
        both: {
          filename: host("both"),
          content: "${tls_private_key.key.private_key_pem}${tls_self_signed_cert.certificate.cert_pem}",
        },
      },
    });
    const both = readFileSync(host("both"), "utf8");
    expect(
      new X509Certificate(both.slice(both.indexOf("-----BEGIN CERT"))).checkPrivateKey(
        createPrivateKey(both),
      ),
    ).toBe(true);
  });

  test.each<[string, object, RegExp]>([
    [
      "another reference",
      { content: "a ${random_id.b.hex} c" },
      /local_file\.f\.content: \$\{random_id\.b\.hex\} cannot be resolved/,
    ],
    [
      "a function",
      { content: '${jsonencode({"a" = 1})}' },
      /local_file\.f\.content: .*jsonencode.* cannot be resolved/,
    ],
    [
      "an unknown attribute",
      { content: "${tls_private_key.key.id}" },
      /\$\{tls_private_key\.key\.id\} cannot/,
    ],
    [
      "a resource that is not there",
      { content: "${tls_private_key.none.private_key_pem}" },
      /tls_private_key\.none is referred to/,
    ],
    ["a directive", { content: "%{ if true }x%{ endif }" }, /cannot be resolved/],
    ["count", { content: "", count: 2 }, /local_file\.f uses count/],
    ["no content", {}, /neither content nor source/],
    [
      "a file outside the root",
      { content: "", filename: "/etc/portico/portico.json" },
      /outside .*PORTICO_ROOT/,
    ],
    ["a file beside the root", { content: "", filename: "../../host-plain/x" }, /outside .*PORTICO_ROOT/],
  ])("refuses %s", async (_what, args, message) => {
    const file = { filename: host("f"), file_permission: "0644", ...args };
    await expect(apply({ tls_private_key: { key: KEY }, local_file: { f: file } })).rejects.toThrow(message);
  });

  test("refuses a stack without files", async () => {
    await expect(apply({})).rejects.toThrow(/no local_file/);
  });
});

test("media: a decodable PNG, readable by everyone down to the file", async () => {
  const umask = process.umask(0o077);
  try {
    await createMedia(host("opt/sync/media"));
  } finally {
    process.umask(umask);
  }
  const png = readFileSync(host("opt/sync/media", MEDIA_FILES.image));
  expect(png.subarray(1, 4).toString()).toBe("PNG");
  expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([64, 64]);
  const data = png.subarray(png.indexOf("IDAT") + 4, png.indexOf("IEND") - 8);
  expect(inflateSync(data)).toHaveLength(64 * (1 + 64 * 4));
  expect(mode(host("opt/sync/media", MEDIA_FILES.image))).toBe("644");
  expect(["opt", "opt/sync/media", "opt/sync/media/img"].map((d) => mode(host(d)))).toEqual([
    "755",
    "755",
    "755",
  ]);
});
