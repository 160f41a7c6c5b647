import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, open, type FileHandle } from "node:fs/promises";

/** A file system of FUSE that a user has mounted: all that is in it is a directory, of root's if one believes it. */
export async function mountAs(uid: number, directory: string): Promise<() => Promise<void>> {
  const device = await open("/dev/fuse", constants.O_RDWR);
  const options = `fd=3,rootmode=40000,user_id=${uid},group_id=${uid},allow_other`;
  const responses = respond(device);
  await ended("mount", ["-i", "-n", "-t", "fuse", "-o", options, "made-up", directory], device.fd);
  return async () => {
    await ended("umount", ["-l", directory]);
    await responses;
    await device.close();
  };
}

async function ended(program: string, args: readonly string[], fd?: number): Promise<void> {
  const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit", fd ?? "ignore"] });
  const [code] = (await once(child, "exit")) as [number];
  if (code !== 0) throw new Error(`${program} ended with ${code}`);
}

const [LOOKUP, FORGET, GETATTR, INIT, BATCH_FORGET] = [1, 2, 3, 26, 42];
const ENOSYS = 38;

/** Until it is unmounted. */
async function respond(device: FileHandle): Promise<void> {
  const request = Buffer.alloc(1 << 20);
  for (;;) {
    const read = await device.read(request).catch((error: NodeJS.ErrnoException) => error.code);
    // It was unmounted; before it is mounted, nothing can be read.
    if (read === "ENODEV") return;
    if (typeof read !== "object") {
      await new Promise((done) => setTimeout(done, 10));
      continue;
    }
    const opcode = request.readUInt32LE(4);
    if (opcode === FORGET || opcode === BATCH_FORGET) continue;
    const body = bodyOf(opcode);
    const head = Buffer.alloc(16);
    head.writeUInt32LE(16 + (body?.length ?? 0), 0);
    head.writeInt32LE(body === undefined ? -ENOSYS : 0, 4);
    request.copy(head, 8, 8, 16);
    await device.write(Buffer.concat([head, body ?? Buffer.alloc(0)]));
  }
}

/** As in linux/fuse.h. */
function bodyOf(opcode: number): Buffer | undefined {
  const attributes = Buffer.alloc(88);
  attributes.writeUInt32LE(0o40755, 60);
  attributes.writeUInt32LE(2, 64);
  if (opcode === GETATTR) return Buffer.concat([Buffer.alloc(16), attributes]);
  const entry = Buffer.alloc(40);
  entry.writeUInt32LE(2, 0);
  if (opcode === LOOKUP) return Buffer.concat([entry, attributes]);
  const version = Buffer.alloc(64);
  version.writeUInt32LE(7, 0);
  version.writeUInt32LE(31, 4);
  version.writeUInt32LE(1 << 17, 20);
  return opcode === INIT ? version : undefined;
}
