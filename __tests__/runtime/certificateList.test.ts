import { listCertificates } from "../../src/runtime/supervisor/control/certificateList.js";
import { MasterLog } from "../../src/runtime/supervisor/report/masterLog.js";
import { CertificateManager } from "../../src/runtime/supervisor/served/certificateManager.js";
import { wantedCertificates } from "../../src/runtime/load/wantedCertificates.js";
import { issue } from "../../testkit/certificates.js";
import { loopback, oneServerConfig } from "../../testkit/oneServer.js";

/** Certificates in use, as `portico certificates` shows them, and the daily look at them. */

const POLICY = { policy: "mozilla-intermediate" } as const;

const acmeConfig = (...names: string[]) =>
  oneServerConfig({
    certificateAuthorities: [
      { name: "ca", directory: "https://ca.example.net/dir", agreeToTerms: true, challenge: "tls-alpn-01" },
    ],
    listeners: [loopback("one", 443, { ...POLICY, acme: { authority: "ca", names } })],
    routes: [],
  });

test("certificates are looked at once a day", async () => {
  const { key, cert } = await issue({ type: "ec", names: ["a.example"], from: -9, to: 2 });
  const listener = loopback("one", 443, { ...POLICY, certificate: "/a", key: "/k" });
  const config = oneServerConfig({ listeners: [listener], routes: [] });
  const tls = { one: { certificates: [{ id: "/a", source: "files", key, cert }] } } as const;
  const stderr = jest.spyOn(process.stderr, "write").mockReturnValue(true);
  const unused = () => Promise.reject(new Error("not for this test"));
  jest.useFakeTimers({ doNotFake: ["nextTick", "setImmediate", "queueMicrotask", "Date"] });
  try {
    const certificates = new CertificateManager(undefined, new MasterLog(true), {
      ...{ loaded: () => ({ config, tls, warnings: [] }), install: unused, respondToChallenges: unused },
    });
    expect(certificates.list()).toMatchObject({ message: "1 certificate", certificates: [{ from: "/a" }] });
    jest.advanceTimersByTime(86_399_999);
    expect(stderr).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(stderr.mock.calls.map(String)).toEqual([
      expect.stringMatching(/^portico: warning: .*expires on .*in \d+ days?/),
    ]);
    await certificates.stop();
    jest.advanceTimersByTime(864_000_000);
    expect(stderr).toHaveBeenCalledTimes(1);
  } finally {
    jest.useRealTimers();
    stderr.mockRestore();
  }
});

describe("certificates in use", () => {
  test("are listed once each, with their listeners, names and issuer", async () => {
    const { cert, key } = await issue({ type: "ec", names: ["a.example", "192.0.2.1"], name: "a" });
    const bare = await issue({ type: "ec", name: "only a subject" });
    const https = (name: string, port: number, certificate: string, ...further: string[]) =>
      loopback(name, port, {
        ...{ ...POLICY, certificate, key: "/k" },
        certificates: further.map((one) => ({ certificate: one, key: "/k" })),
      });
    const listeners = [https("one", 443, "/a", "/b"), https("two", 444, "/a")];
    const config = oneServerConfig({ listeners, routes: [] });
    const of = (id: string, pem: string) => ({ id, source: "files", key, cert: pem }) as const;
    const tls = {
      one: { certificates: [of("/a", cert), of("/b", bare.cert)] },
      two: { certificates: [of("/a", cert)] },
    };
    const status = {
      id: "/b",
      names: [],
      authority: "ca",
      state: "waiting",
      renewAt: 5,
      nextAttempt: 7,
    } as const;
    const listed = listCertificates({ config, tls, warnings: [] }, [status]);
    const ends = { notBefore: expect.any(Number) as number, notAfter: expect.any(Number) as number };
    expect(listed).toEqual([
      {
        ...{ names: ["a.example", "192.0.2.1"], listeners: ["one", "two"], source: "files", from: "/a" },
        ...{ issuer: "a", ...ends },
      },
      {
        ...{ names: ["CN=only a subject"], listeners: ["one"], source: "files", from: "/b" },
        ...{ issuer: "only a subject", ...ends, state: "waiting", renewAt: 5, nextAttempt: 7 },
      },
    ]);
    expect(listCertificates({ config, tls: {}, warnings: [] }, [])).toEqual([]);
  });

  test("by ACME are listed with the names that are wanted, and all that is known of them", async () => {
    const names = ["a.example.net", "b.example.net"];
    const config = acmeConfig(...names);
    const { id } = wantedCertificates(config)[0]!;
    const { key, cert } = await issue({ type: "ec", name: "x\u202e" });
    const tls = { one: { certificates: [{ id, source: "temporary", key, cert }] } } as const;
    const lastError = { code: "caa", message: "m", fix: "f", at: 7 };
    const status = {
      id,
      names: [],
      authority: "ca",
      state: "none",
      waitsFor: "192.0.2.9",
      lastError,
    } as const;
    expect(listCertificates({ config, tls, warnings: [] }, [{ ...status, id: "other" }, status])).toEqual([
      {
        ...{ names, listeners: ["one"], source: "temporary", from: "ca", issuer: "x\\u202e" },
        ...{
          notBefore: expect.any(Number),
          notAfter: expect.any(Number),
          state: "none",
          waitsFor: "192.0.2.9",
          lastError,
        },
      },
    ]);
  });
});
