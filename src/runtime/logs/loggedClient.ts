import { isIPv4, isIPv6 } from "node:net";
import { clientNetwork, type ProxyConfig } from "../../model/serving.js";

/** An address as logs show it. */
export type ShownClient = (address: string) => string;

/** In place of an address that is not shown, as in nginx's format for whatever is not there. */
export const NOT_SHOWN = "-";

export const asItIs: ShownClient = (address) => address;

/** How `logs.clientAddress` shows addresses. What is no address says nothing about a network. */
export function shownClient(how: ProxyConfig["logs"]["clientAddress"]): ShownClient {
  if (how === "none") return () => NOT_SHOWN;
  if (how !== "network") return asItIs;
  return (address) => {
    if (isIPv4(address)) return `${address.slice(0, address.lastIndexOf("."))}.0`;
    return isIPv6(address) ? clientNetwork(address).replace(/\/.*/, "") : NOT_SHOWN;
  };
}

/** A message with the addresses of clients as they are shown; messages name them all in this one way. */
export const shownIn = (message: string, shown: ShownClient): string =>
  message.replace(NAMED_CLIENT, (_, before: string, address: string) => before + shown(address));

const NAMED_CLIENT = /(\bclient: )([0-9A-Fa-f:.]+(?:%[\w.-]+)?)(?=[,\s]|$)/g;
