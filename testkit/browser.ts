import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "./ports.js";

/** Headless Chromium, driven by W3C WebDriver (chromedriver). */
export class Browser {
  private constructor(
    private readonly driver: ChildProcess,
    private readonly session: string,
  ) {}

  /** Starts a browser that takes self-signed certificates, as a user does who adds an exception (service 3.3). */
  static async start(): Promise<Browser> {
    const port = await freePort();
    const driver = spawn("chromedriver", [`--port=${port}`], { stdio: "ignore" });
    const failed = once(driver, "error").then(([error]) => {
      throw new Error(`chromedriver cannot be run: ${(error as Error).message}`);
    });
    const base = `http://127.0.0.1:${port}`;
    await Promise.race([failed, untilReady(`${base}/status`)]);
    // Root may not use Chromium's sandbox, and the pages are ours.
    const args = [
      "--headless=new",
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--hide-scrollbars",
    ];
    const alwaysMatch = { acceptInsecureCerts: true, "goog:chromeOptions": { args } };
    const { sessionId } = await command<{ sessionId: string }>("POST", `${base}/session`, {
      capabilities: { alwaysMatch },
    });
    return new Browser(driver, `${base}/session/${sessionId}`);
  }

  async open(url: string): Promise<void> {
    await command("POST", `${this.session}/url`, { url });
  }

  url(): Promise<string> {
    return command("GET", `${this.session}/url`);
  }

  title(): Promise<string> {
    return command("GET", `${this.session}/title`);
  }

  /** Types into the element that a CSS selector finds; into a file input, the path of the file. */
  async type(selector: string, text: string): Promise<void> {
    await command("POST", `${await this.find(selector)}/value`, { text });
  }

  async click(selector: string): Promise<void> {
    await command("POST", `${await this.find(selector)}/click`, {});
  }

  /** Signs out of the page's site. */
  async deleteCookies(): Promise<void> {
    await command("DELETE", `${this.session}/cookie`);
  }

  /** What a function body returns in the page. */
  evaluate<T>(script: string): Promise<T> {
    return command("POST", `${this.session}/execute/sync`, { script, args: [] });
  }

  /** What it shows: a width, a height that all of the page fits into unless it is given, and which colours it asks for. */
  async showAs({ width, height, dark }: { width: number; height?: number; dark: boolean }): Promise<void> {
    const features = [
      { name: "prefers-color-scheme", value: dark ? "dark" : "light" },
      { name: "prefers-reduced-motion", value: "reduce" },
    ];
    await this.devTools("Emulation.setEmulatedMedia", { features });
    const size = (high: number): Promise<unknown> =>
      this.devTools("Emulation.setDeviceMetricsOverride", {
        ...{ width, height: high, deviceScaleFactor: 1, mobile: width < 600 },
      });
    await size(height ?? 600);
    if (height === undefined)
      await size(await this.evaluate<number>("return document.documentElement.scrollHeight"));
  }

  /** A picture of the page as it is shown, as PNG. */
  async screenshot(): Promise<Buffer> {
    return Buffer.from(await command<string>("GET", `${this.session}/screenshot`), "base64");
  }

  private devTools(cmd: string, params: object): Promise<unknown> {
    return command("POST", `${this.session}/goog/cdp/execute`, { cmd, params });
  }

  async stop(): Promise<void> {
    await command("DELETE", this.session).catch(() => undefined);
    this.driver.kill();
  }

  private async find(value: string): Promise<string> {
    const using = "css selector";
    const found = await command<Record<string, string>>("POST", `${this.session}/element`, { using, value });
    return `${this.session}/element/${Object.values(found)[0]}`;
  }
}

async function command<T>(method: string, url: string, body?: unknown): Promise<T> {
  const more = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(url, { method, ...more, headers: { "content-type": "application/json" } });
  const { value } = (await response.json()) as { value: T & { error?: string; message?: string } };
  if (!response.ok) throw new Error(`${method} ${url}: ${value.error}: ${value.message?.split("\n")[0]}`);
  return value;
}

async function untilReady(url: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      if ((await fetch(url)).ok) return;
    } catch (error) {
      if (tries >= 100) throw error;
    }
    await sleep(100);
  }
}
