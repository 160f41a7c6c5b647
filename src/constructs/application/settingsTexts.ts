import { Construct } from "constructs";
import type { ApplicationDefinition, PublicPlace } from "../../applications/index.js";
import { renderSettings } from "../../render/index.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { renderAroundTokens } from "../props/tokens.js";

/**
 * Settings of an application that depend on the public URL: a text for each settings file, and a text with commands
 * for an administrator. Users copy the texts by hand.
 */
export class SettingsTexts extends Construct {
  /** The texts, by the name of the application's file. `commands` contains the commands. */
  readonly files: Readonly<Record<string, HostFile>>;

  /** @internal Made by a front end. */
  constructor(scope: Construct, id: string, props: SettingsTextsProps) {
    super(scope, id);
    const { application, place, host, directory } = props;
    const add = (name: string, render: (known: PublicPlace) => string): [string, HostFile] => {
      const path = `${directory}/${name}`;
      const content = renderAroundTokens(place, render);
      return [name, new HostFile(this, name, { host, path, content, role: "settings" })];
    };
    const { settings, commands } = application;
    const texts = (settings?.(place) ?? []).map(({ name }) =>
      add(name, (known) => renderSettings(settings!(known).find((file) => file.name === name)!)),
    );
    const lines = commands === undefined ? [] : [add("commands", (known) => commandText(application, known))];
    this.files = Object.fromEntries([...texts, ...lines]);
  }
}

interface SettingsTextsProps {
  readonly host: IHost;
  readonly application: ApplicationDefinition;
  readonly place: PublicPlace;
  readonly directory: string;
}

const commandText = ({ commands }: ApplicationDefinition, place: PublicPlace): string =>
  (commands?.(place) ?? []).map(({ purpose, command }) => `# ${purpose}\n${command}\n`).join("\n");
