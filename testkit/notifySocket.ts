import { spawn } from "node:child_process";
import { nextEvent } from "./waiting.js";

/**
 * A socket as systemd's, that services tell their state. Perl, because Node has no datagram sockets of the Unix kind
 * and every Debian has Perl.
 */
export class NotifySocket {
  /** Every line of every message, in the order they came. */
  readonly messages: string[] = [];
  private readonly reader;

  private constructor(readonly path: string) {
    this.reader = spawn("perl", ["-MSocket", "-e", READ, path], { stdio: ["ignore", "pipe", "inherit"] });
    let text = "";
    this.reader.stdout.setEncoding("latin1").on("data", (chunk: string) => {
      const lines = (text + chunk).split("\n");
      text = lines.pop()!;
      this.messages.push(...lines);
    });
  }

  static async open(path: string): Promise<NotifySocket> {
    const socket = new NotifySocket(path);
    while (socket.messages.length === 0) await nextEvent(socket.reader.stdout, "data");
    socket.messages.length = 0;
    return socket;
  }

  /** The last value of a variable, or nothing. */
  last(variable: string): string | undefined {
    const values = this.messages.flatMap(
      (message) => message.match(new RegExp(`^${variable}=(.*)$`))?.[1] ?? [],
    );
    return values.at(-1);
  }

  close(): void {
    this.reader.kill("SIGKILL");
  }
}

// Passed descriptors (the barrier of sd_notify_barrier) are dropped, which is the response they ask for.
const READ = `
  $| = 1;
  socket(my $socket, AF_UNIX, SOCK_DGRAM, 0) or die $!;
  bind($socket, sockaddr_un($ARGV[0])) or die $!;
  print "open\\n";
  while (defined recv($socket, my $message, 65536, 0)) {
    print "$_\\n" for grep { !/^BARRIER=/ } split /\\n/, $message;
  }
`;
