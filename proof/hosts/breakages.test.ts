import { breakHost } from "./brokenHost.js";

/** Ways to break a host itself: its files, units, packet filter and addresses. */
breakHost("breakages", "Delivered files", "System and network");
