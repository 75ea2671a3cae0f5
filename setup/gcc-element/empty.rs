// SPDX-License-Identifier: GPL-2.0
// Cargo wants a library of the project's own; only the dependency matters.
