import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { crc32, deflateSync } from "node:zlib";

/** Paths below the media directory of what the demo puts there. */
export const MEDIA_FILES = {
  image: "img/logo.png",
  drawing: "img/mark.svg",
  script: "scripts/upload.js",
} as const;

/** Fills the media directory as an installation of the application would, readable for the world (service 2.8). */
export async function createMedia(directory: string): Promise<void> {
  await put(directory, MEDIA_FILES.image, logo(64));
  await put(directory, MEDIA_FILES.drawing, DRAWING);
  await put(directory, MEDIA_FILES.script, UPLOAD_SCRIPT);
}

async function put(directory: string, name: string, content: string | Buffer): Promise<void> {
  const file = path.join(directory, name);
  const folder = path.dirname(file);
  const first = await mkdir(folder, { recursive: true });
  // Whatever the umask says: the proxy's user needs read and execute permission all the way down.
  for (let at = folder; first !== undefined && at.length >= first.length; at = path.dirname(at)) {
    await chmod(at, 0o755);
  }
  await writeFile(file, content);
  await chmod(file, 0o644);
}

/** A PNG of a disc with a smooth edge: 8 bit RGBA, no filter, no interlace (PNG specification, 11.2). */
function logo(size: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const row = 1 + size * 4;
  const pixels = Buffer.alloc(size * row);
  const centre = (size - 1) / 2;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const edge = centre - Math.hypot(x - centre, y - centre);
      const alpha = Math.max(0, Math.min(255, Math.round(edge * 255)));
      pixels.set([30, 90 + Math.round((y / size) * 120), 200, alpha], y * row + 1 + x * 4);
    }
  }
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", deflateSync(pixels)), chunk("IEND")]);
}

function chunk(type: string, data: Buffer = Buffer.alloc(0)): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  out.set(body, 4);
  out.writeUInt32BE(crc32(body), body.length + 4);
  return out;
}

const DRAWING = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">
<path d="M8 56V32a24 24 0 0 1 48 0v24M4 56h56" fill="none" stroke="#1e5ac8" stroke-width="6"/>
</svg>
`;

/** Sends a chosen file as it is, without a form's wrapping, so that any size streams through the proxy. */
const UPLOAD_SCRIPT = `const form = document.querySelector("#upload");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const [file] = form.querySelector("input").files;
  const output = form.querySelector("output");
  const url = form.dataset.files + encodeURIComponent(file.name);
  output.textContent = "Uploading " + file.name + " ...";
  try {
    const response = await fetch(url, { method: "PUT", body: file });
    const stored = await response.json();
    output.innerHTML = '<a download></a>';
    const link = output.firstChild;
    link.href = url;
    link.textContent = stored.name + ": " + stored.bytes + " bytes, SHA-256 " + stored.sha256;
  } catch (error) {
    output.textContent = "The upload failed: " + error.message;
  }
});
`;
