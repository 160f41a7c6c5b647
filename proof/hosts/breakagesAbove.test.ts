import { breakHost } from "./brokenHost.js";

/** Ways to break what is above the host itself: logs, the application, the activation and what it keeps. */
breakHost("breakages-above", "Logs", "The application", "Activation and its store");
