// SPDX-License-Identifier: GPL-2.0
//
// about:config of the lab's Firefox. Marionette itself turns off much of what calls home.

'use strict';

module.exports = {
  // Any free port: it is in the profile's MarionetteActivePort.
  'marionette.port': 0,
  // Nothing that calls home.
  'app.normandy.enabled': false,
  'app.update.enabled': false,
  'browser.newtabpage.enabled': false,
  'browser.safebrowsing.downloads.enabled': false,
  'browser.safebrowsing.malware.enabled': false,
  'browser.safebrowsing.phishing.enabled': false,
  'browser.startup.page': 0,
  'datareporting.policy.dataSubmissionEnabled': false,
  'extensions.systemAddon.update.enabled': false,
  'media.gmp-manager.updateEnabled': false,
  'messaging-system.rsexperimentloader.enabled': false,
  'network.captive-portal-service.enabled': false,
  'network.connectivity-service.enabled': false,
  'network.manage-offline-status': false,
  'services.settings.server': 'data:,',
  'toolkit.telemetry.enabled': false,
  // A canvas is captured when the screen is drawn. Clips of 24 pictures/s have an even beat so.
  'gfx.webrender.software': true,
  'layout.frame_rate': 72,
  // Times in a page as they are.
  'privacy.reduceTimerPrecision': false,
  // Addresses of the namespace, as a page that may use the camera has them.
  'media.peerconnection.ice.obfuscate_host_addresses': false,
  // Else pictures are halved in the first second, and so small ones get 500 kbit/s (README.md).
  'media.peerconnection.video.lock_scaling': true,
};
