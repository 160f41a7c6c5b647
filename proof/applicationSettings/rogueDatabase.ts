import { createServer, type Server, type Socket } from "node:net";

/** Somebody who holds the database's port: speaks the protocol as far as it takes to ask for what is nobody's business. */
export interface RogueDatabase {
  readonly port: number;
  /** All that clients sent. */
  received(): Buffer;
  stop(): Promise<void>;
}

/**
 * @param plugin authentication that the server asks for after the greeting
 * @param file what it asks for instead of responding to the first query; without it, it responds without end
 */
export async function startRogueDatabase(plugin: string | undefined, file?: string): Promise<RogueDatabase> {
  const pieces: Buffer[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    let packets = 0;
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      pieces.push(data);
      packets++;
      const sequence = data[3]! + 1;
      if (packets === 1 && plugin !== undefined) {
        const request = Buffer.concat([Buffer.from([0xfe]), Buffer.from(`${plugin}\0${"s".repeat(20)}\0`)]);
        socket.write(packet(request, sequence));
      } else if (data[4] === QUERY && file === undefined) {
        respondForEver(socket);
      } else if (data[4] === QUERY) {
        socket.write(packet(Buffer.concat([Buffer.from([0xfb]), Buffer.from(file!)]), sequence));
      } else {
        socket.write(packet(Buffer.from([0, 0, 0, 2, 0, 0, 0]), sequence));
      }
    });
    socket.write(packet(GREETING, 0));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    received: () => Buffer.concat(pieces),
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const QUERY = 3;

/** Two columns of text, and rows of a thousand characters. */
function respondForEver(socket: Socket): void {
  const text = (one: string): number[] => [0xfc, one.length & 0xff, one.length >> 8, ...Buffer.from(one)];
  const column = [
    ...["def", "", "", "", "a", ""].flatMap(text),
    12,
    33,
    0,
    255,
    255,
    0,
    0,
    0xfd,
    0,
    0,
    0,
    0,
    0,
  ];
  const head = [[2], column, column, [0xfe, 0, 0, 2, 0]];
  socket.write(Buffer.concat(head.map((payload, i) => packet(Buffer.from(payload), i + 1))));
  const row = Buffer.from([...text("SERVICE_URL"), ...text("61".repeat(500))]);
  const sequences = Array.from({ length: 256 }, (_, i) => packet(row, (i + head.length + 1) & 0xff));
  const rows = Buffer.concat(sequences);
  const more = (): void => void (socket.destroyed || socket.write(rows, more));
  more();
}

function packet(payload: Buffer, sequence: number): Buffer {
  const head = Buffer.alloc(4);
  head.writeUIntLE(payload.length, 0, 3);
  head[3] = sequence;
  return Buffer.concat([head, payload]);
}

/** Protocol 10 with LOCAL_FILES, PROTOCOL_41, SECURE_CONNECTION and PLUGIN_AUTH among the capabilities. */
const GREETING = Buffer.concat([
  Buffer.from("\x0a10.11.0-MariaDB\0", "latin1"),
  Buffer.from([1, 0, 0, 0]),
  Buffer.from("saltsalt\0"),
  Buffer.from([0x8f, 0xa2, 33, 2, 0, 0x08, 0x00, 21]),
  Buffer.alloc(10),
  Buffer.from("saltsaltsalt\0mysql_native_password\0"),
]);
