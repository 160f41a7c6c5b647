import { Annotations } from "cdktf";
import { addCustomSynthesis } from "cdktf/lib/synthesize/synthesizer";
import type { IConstruct } from "constructs";

/**
 * Warns of something that works but is probably not intended. cdktf keeps a warning in the manifest of the app, which
 * only its own command line reads; if another program synthesizes, the warning is written to standard error, once.
 */
export function warn(construct: IConstruct, message: string): void {
  Annotations.of(construct).addWarning(message);
  if (process.env.CDKTF_CONTINUE_SYNTH_ON_ERROR_ANNOTATIONS !== undefined) return;
  const known = unsaid.get(construct);
  if (known !== undefined) {
    known.add(message);
    return;
  }
  const messages = new Set([message]);
  unsaid.set(construct, messages);
  addCustomSynthesis(construct, {
    onSynthesize: () => {
      for (const text of messages) process.stderr.write(`warning: ${construct.node.path}: ${text}\n`);
      messages.clear();
    },
  });
}

const unsaid = new WeakMap<IConstruct, Set<string>>();
