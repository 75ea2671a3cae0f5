-- SPDX-License-Identifier: GPL-2.0
-- Wireshark dissector of P-AQM feedback messages, versions 1 and 2 (docs/protocol.md): ICMP type
-- 253, code 0, over IPv4, and type 4 where it carries a PAQM object; ICMPv6 type 200, and type 100
-- of version 1.
--
--   wireshark -X lua_script:paqm.lua FILE
--
-- or copy this file into the personal plugin folder (Help, About, Folders).
-- Types 253 and 200 are for experiments (RFC 4727, RFC 4443), so other messages may carry them:
-- they are shown with refusal msg_magic. The refusals are those of paqmd, in its order;
-- what needs the sender's state (flow, quoted bytes, sequence) cannot be told here.

local paqm = Proto("paqm", "P-AQM Feedback")

-- Of the carriers over IPv4; true: any message is looked into, else what has an object of ours.
local TYPES = {[253] = true, [4] = false}
local TYPE6, TYPE6_OLD, ICMPV6 = 200, 100, 58
local ICMP_HDR, EXT_HDR, MESSAGE_MAX = 8, 4, 340
local OBJ_HDR, OBJ_FIXED, OBJ_MAX, OPT_HDR = 4, 44, 128, 4
local QUOTE_MIN, QUOTE_MIN6, IP6_HDR = 28, 48, 40
local CLASS, VERSION, RELATIVE, TAG, MUST = 0xf701, 2, 1, 0x8001, 0x8000
local OBJECT1, PAYLOAD1 = 48, 28 -- of version 1
local PROOF, PROOF_BEHIND, PROOF_MAX = 28, 16, 128
local MAGIC = 0x5041514d
local VALUE_MIN, VALUE_MAX = 2 ^ -20, 1e12

local f = {
	refusal = ProtoField.string("paqm.refusal", "Refused because of"),
	value = ProtoField.float("paqm.value", "Value"),
	words = ProtoField.uint8("paqm.quote.words", "Length of the quote in words"),
	quote = ProtoField.bytes("paqm.quote", "Quoted packet"),
	src = ProtoField.ipv4("paqm.quote.src", "Source"),
	dst = ProtoField.ipv4("paqm.quote.dst", "Destination"),
	src6 = ProtoField.ipv6("paqm.quote.src6", "Source"),
	dst6 = ProtoField.ipv6("paqm.quote.dst6", "Destination"),
	srcport = ProtoField.uint16("paqm.quote.srcport", "Source port"),
	dstport = ProtoField.uint16("paqm.quote.dstport", "Destination port"),
	payload = ProtoField.bytes("paqm.quote.payload", "Payload"),
	proof = ProtoField.uint8("paqm.quote.proof", "Bytes that prove the packet"),
	rtp_pt = ProtoField.uint8("paqm.quote.rtp.pt", "RTP payload type", base.DEC, nil, 0x7f),
	rtp_seq = ProtoField.uint16("paqm.quote.rtp.seq", "RTP sequence"),
	rtp_time = ProtoField.uint32("paqm.quote.rtp.timestamp", "RTP timestamp"),
	rtp_ssrc = ProtoField.uint32("paqm.quote.rtp.ssrc", "RTP SSRC", base.HEX),
	ext = ProtoField.bytes("paqm.ext", "Extension structure"),
	ext_version = ProtoField.uint8("paqm.ext.version", "Its version", base.DEC, nil, 0xf0),
	ext_checksum = ProtoField.uint16("paqm.ext.checksum", "Its checksum", base.HEX),
	foreign = ProtoField.bytes("paqm.foreign", "Object that is passed over"),
	object = ProtoField.bytes("paqm.object", "Object"),
	length = ProtoField.uint16("paqm.length", "Length"),
	class = ProtoField.uint16("paqm.class", "Class and type", base.HEX),
	magic = ProtoField.string("paqm.magic", "Magic"),
	version = ProtoField.uint8("paqm.version", "Version"),
	flags = ProtoField.uint8("paqm.flags", "Flags", base.HEX),
	overload = ProtoField.bool("paqm.flags.overload", "Overload", 8, nil, 0x01),
	policed = ProtoField.bool("paqm.flags.policed", "Policed", 8, nil, 0x02),
	final = ProtoField.bool("paqm.flags.final", "Final", 8, nil, 0x04),
	auth = ProtoField.bool("paqm.flags.auth", "Authenticated", 8, nil, 0x08),
	unassigned = ProtoField.uint8("paqm.flags.unassigned", "Unassigned", base.HEX, nil, 0xf0),
	key_id = ProtoField.uint16("paqm.key_id", "Key", base.HEX),
	router_id = ProtoField.uint64("paqm.router_id", "Router", base.HEX),
	boot = ProtoField.uint32("paqm.boot", "Boot", base.HEX),
	seq = ProtoField.uint32("paqm.seq", "Notice round"),
	rate = ProtoField.uint64("paqm.rate", "Fair rate (bit/s)"),
	period = ProtoField.uint16("paqm.period", "Period", base.UNIT_STRING, {" ms"}),
	qdelay = ProtoField.uint16("paqm.qdelay", "Media queue", base.UNIT_STRING, {" x 0.1 ms"}),
	flows = ProtoField.uint16("paqm.flows", "Media flows"),
	util = ProtoField.uint16("paqm.util", "Utilisation (65535 = 100 %)"),
	option = ProtoField.bytes("paqm.option", "Option"),
	option_type = ProtoField.uint16("paqm.option.type", "Type", base.HEX),
	option_length = ProtoField.uint16("paqm.option.length", "Length"),
	ecf = ProtoField.float("paqm.ecf", "Relative value"),
	meaning = ProtoField.string("paqm.ecf.meaning", "Meaning"),
	tag = ProtoField.uint64("paqm.tag", "Tag", base.HEX),
}

-- Refusal, severity text. The order of the checks is in refusal_of().
local refusals = {
	msg_length = "length is not that of a message (84, over IPv6 104, to 340 bytes)",
	msg_type = "type or code is not that of a message of this version",
	msg_checksum = "ICMP checksum is wrong",
	msg_magic = "no PAQM object: another experiment, or damaged",
	msg_version = "version is not understood",
	msg_quote = "quoted packet is not the head of a UDP packet of this IP version",
	msg_option = "an option is cut, comes twice, or is unknown and must be known",
	msg_value = "a value is not finite, not positive or out of range",
	msg_mismatch = "version 1: value of the ICMP header is not that of the object",
}
local e = {}
for name, text in pairs(refusals) do
	e[name] = ProtoExpert.new("paqm." .. name, text, expert.group.MALFORMED,
		expert.severity.WARN)
end
e.cut = ProtoExpert.new("paqm.cut", "captured only in part: not judged", expert.group.UNDECODED,
	expert.severity.NOTE)
e.quote_short = ProtoExpert.new("paqm.quote_short", "the quote proves nothing: nobody believes it",
	expert.group.PROTOCOL, expert.severity.WARN)
e.unverified = ProtoExpert.new("paqm.unverified", "tag is not verified: keys are not known here",
	expert.group.SECURITY, expert.severity.NOTE)
e.overload = ProtoExpert.new("paqm.overload", "media queue is overloaded", expert.group.SEQUENCE,
	expert.severity.CHAT)

paqm.fields = (function()
	local list = {}
	for _, field in pairs(f) do list[#list + 1] = field end
	return list
end)()
paqm.experts = (function()
	local list = {}
	for _, expert_info in pairs(e) do list[#list + 1] = expert_info end
	return list
end)()

local function sum_of(bytes)
	local sum = 0
	for i = 0, bytes:len() - 1 do
		sum = sum + bytes:get_index(i) * (i % 2 == 0 and 256 or 1)
	end
	return sum
end

local function folds_to_zero(sum)
	while sum > 0xffff do
		sum = sum % 0x10000 + math.floor(sum / 0x10000)
	end
	return sum == 0xffff
end

-- ends: over IPv6 the addresses of the message, which are covered, too (here and below).
local function checksum_ok(tvb, ends)
	local sum = sum_of(tvb:bytes())
	if ends then sum = sum + sum_of(ends) + tvb:len() + ICMPV6 end
	return folds_to_zero(sum)
end

local function value_ok(v)
	return v >= VALUE_MIN and v <= VALUE_MAX -- false for NaN
end

-- Where things are in a message: version, quote (its length), at and size of our object, ext and
-- all objects {at, size} of version 2; other: there are objects of ours of other versions only.
local function layout(tvb, len, six)
	local l = {objects = {}}
	local quote = tvb(six and 4 or 5, 1):uint() * (six and 8 or 4)
	local ext = ICMP_HDR + quote
	local whole = quote > 0 and ext + EXT_HDR <= len and
		math.floor(tvb(ext, 1):uint() / 16) == 2
	if whole and tvb(ext + 2, 2):uint() ~= 0 then -- 0: there is none
		whole = folds_to_zero(sum_of(tvb(ext, len - ext):bytes()))
	end
	local at = ext + EXT_HDR
	while whole and len - at >= OBJ_HDR do
		local size = tvb(at, 2):uint()
		if size < OBJ_HDR or size > len - at then break end
		l.objects[#l.objects + 1] = {at, size}
		if tvb(at + 2, 2):uint() == CLASS and size >= OBJ_HDR + 5 and
			tvb(at + 4, 4):uint() == MAGIC and not l.at then
			if tvb(at + 8, 1):uint() == VERSION and size >= OBJ_FIXED and size <= OBJ_MAX then
				l.version, l.quote, l.ext, l.at, l.size = VERSION, quote, ext, at, size
			else
				l.other = true
			end
		end
		at = at + size
	end
	local last = len - OBJECT1
	if not l.at and last >= ICMP_HDR and tvb(last, 4):uint() == MAGIC then
		l.version, l.quote, l.at, l.size = 1, last - ICMP_HDR, last, OBJECT1
	end
	return l
end

-- Length of the quoted IP header, or nil.
local function quoted_header(tvb, l, six)
	local at = ICMP_HDR
	if l.quote < (six and QUOTE_MIN6 or QUOTE_MIN) then return nil end
	if math.floor(tvb(at, 1):uint() / 16) ~= (six and 6 or 4) then return nil end
	if tvb(at + (six and 6 or 9), 1):uint() ~= 17 then return nil end
	local hlen = six and IP6_HDR or tvb(at, 1):uint() % 16 * 4
	if hlen < 20 or hlen + 8 > l.quote then return nil end
	if not six and tvb(at + 6, 2):uint() % 0x2000 ~= 0 then return nil end
	local most = l.version == 1 and PAYLOAD1 or PROOF_MAX + (six and 7 or 3)
	if l.quote - hlen - 8 > most then return nil end
	return hlen
end

-- Options as {type, at, size of the value, room for it}, and what is wrong with them, or nil.
local function options_of(tvb, l)
	local list, seen = {}, {}
	local at, stop = l.at + OBJ_FIXED, l.at + l.size
	while at < stop do
		if stop - at < OPT_HDR or seen[TAG] then return list, "msg_option" end
		local kind, size = tvb(at, 2):uint(), tvb(at + 2, 2):uint()
		local room = math.floor((size + 3) / 4) * 4
		if room > stop - at - OPT_HDR then return list, "msg_option" end
		if kind == RELATIVE then
			if size ~= 4 or seen[RELATIVE] then return list, "msg_option" end
		elseif kind == TAG then
			if size ~= 8 then return list, "msg_option" end
		elseif kind >= MUST then
			return list, "msg_option"
		end
		seen[kind] = true
		list[#list + 1] = {kind, at, size, room}
		if kind == RELATIVE and not value_ok(tvb(at + OPT_HDR, 4):float()) then
			return list, "msg_value"
		end
		at = at + OPT_HDR + room
	end
	local auth = math.floor(tvb(l.at + 9, 1):uint() / 8) % 2 == 1
	if auth ~= (seen[TAG] or false) then return list, "msg_option" end
	return list, nil
end

-- What is wrong with an object of version 1, or nil.
local function refusal_of1(tvb, l)
	if not value_ok(tvb(l.at + 24, 4):float()) or not value_ok(tvb(l.at + 28, 4):float()) then
		return "msg_value"
	end
	if tvb(4, 4):uint() ~= tvb(l.at + 24, 4):uint() then return "msg_mismatch" end
	return nil
end

local function rate_of(tvb, l)
	if l.version ~= 1 then return tvb(l.at + 28, 8):uint64() end
	local rate = math.max(math.floor(tvb(l.at + 28, 4):float()), 1)
	return UInt64.new(math.floor(rate % 2 ^ 32), math.floor(rate / 2 ^ 32))
end

-- The first thing that is wrong, as paqmd counts it, or nil.
local function refusal_of(tvb, len, l, ends)
	if len > MESSAGE_MAX or
		len < ICMP_HDR + (ends and QUOTE_MIN6 or QUOTE_MIN) + EXT_HDR + OBJ_FIXED then
		return "msg_length"
	end
	local icmp_type = tvb(0, 1):uint()
	local known = TYPES[icmp_type] ~= nil
	if ends then known = icmp_type == TYPE6 or icmp_type == TYPE6_OLD end
	if not known or tvb(1, 1):uint() ~= 0 then return "msg_type" end
	if not checksum_ok(tvb, ends) then return "msg_checksum" end
	if l.version ~= VERSION and l.other then return "msg_version" end
	if not l.at then return "msg_magic" end
	if l.version == 1 and tvb(l.at + 4, 1):uint() ~= 1 then return "msg_version" end
	if not quoted_header(tvb, l, ends) then return "msg_quote" end
	local why
	if l.version == 1 then
		why = refusal_of1(tvb, l)
	else
		_, why = options_of(tvb, l)
		local rate = tvb(l.at + 28, 8):uint64():tonumber()
		if not why and (rate < 1 or rate > VALUE_MAX) then why = "msg_value" end
	end
	if not why and ends and (l.version == 1) ~= (icmp_type == TYPE6_OLD) then
		why = "msg_type"
	end
	return why
end

local function rate_text(bps)
	if bps >= 1e6 then return string.format("%.3f Mbit/s", bps / 1e6) end
	return string.format("%.1f kbit/s", bps / 1e3)
end

local function ecf_text(v)
	if v == 1 then return "hold" end
	if v < 1 then return string.format("multiply by %.4g", v) end
	return "add " .. rate_text(v)
end

-- How much of a payload proves its packet (docs/protocol.md section 2.3); 0: it does not.
local function proof_of(tvb, at, n)
	local need = PROOF
	if n < need then return 0 end
	local first = tvb(at, 1):uint()
	if math.floor(first / 64) == 2 then
		need = 12 + first % 16 * 4
		if math.floor(first / 16) % 2 == 1 then
			if n < need + 4 then return 0 end
			need = need + 4 + 4 * tvb(at + need + 2, 2):uint()
		end
		need = need + PROOF_BEHIND
	end
	return need <= n and need <= PROOF_MAX and need or 0
end

local function add_quote(tvb, tree, l, six)
	local at, n = ICMP_HDR, l.quote
	local sub = tree:add(f.quote, tvb(at, n))
	local hlen = quoted_header(tvb, l, six)
	if not hlen then return end
	local udp, rest = at + hlen, n - hlen - 8
	if six then
		sub:add(f.src6, tvb(at + 8, 16))
		sub:add(f.dst6, tvb(at + 24, 16))
	else
		sub:add(f.src, tvb(at + 12, 4))
		sub:add(f.dst, tvb(at + 16, 4))
	end
	sub:add(f.srcport, tvb(udp, 2))
	sub:add(f.dstport, tvb(udp + 2, 2))
	local proof = proof_of(tvb, udp + 8, rest)
	local shown = sub:add(f.proof, proof):set_generated()
	if proof == 0 then shown:add_proto_expert_info(e.quote_short) end
	if rest == 0 then return end
	local payload = sub:add(f.payload, tvb(udp + 8, rest))
	if rest < 12 or math.floor(tvb(udp + 8, 1):uint() / 64) ~= 2 then return end
	payload:add(f.rtp_pt, tvb(udp + 9, 1))
	payload:add(f.rtp_seq, tvb(udp + 10, 2))
	payload:add(f.rtp_time, tvb(udp + 12, 4))
	payload:add(f.rtp_ssrc, tvb(udp + 16, 4))
end

local function add_flags(tvb, tree, at)
	local flags = tree:add(f.flags, tvb(at, 1))
	for _, name in ipairs({"overload", "policed", "final", "auth", "unassigned"}) do
		flags:add(f[name], tvb(at, 1))
	end
	if tvb(at, 1):uint() % 2 == 1 then flags:add_proto_expert_info(e.overload) end
end

local function add_value(tvb, tree, at)
	tree:add(f.ecf, tvb(at, 4)):add(f.meaning, tvb(at, 4),
		ecf_text(tvb(at, 4):float())):set_generated()
end

local function add_rate_of(tvb, tree, l)
	local rate = rate_of(tvb, l)
	tree:add(f.rate, tvb(l.at + 28, l.version == 1 and 4 or 8), rate):append_text(
		" = " .. rate_text(rate:tonumber()))
end

-- What both versions have in this order: four fields of two bytes.
local function add_state(tvb, tree, at)
	tree:add(f.period, tvb(at, 2))
	tree:add(f.qdelay, tvb(at + 2, 2)):append_text(
		string.format(" = %.1f ms", tvb(at + 2, 2):uint() / 10))
	tree:add(f.flows, tvb(at + 4, 2))
	tree:add(f.util, tvb(at + 6, 2)):append_text(
		string.format(" = %.1f %%", tvb(at + 6, 2):uint() / 655.35))
end

-- From the magic on; both versions have the same up to the sequence.
local function add_identity(tvb, tree, at)
	tree:add(f.magic, tvb(at, 4))
	tree:add(f.version, tvb(at + 4, 1))
	add_flags(tvb, tree, at + 5)
	tree:add(f.key_id, tvb(at + 6, 2))
	tree:add(f.router_id, tvb(at + 8, 8))
	tree:add(f.boot, tvb(at + 16, 4))
	tree:add(f.seq, tvb(at + 20, 4))
end

local function add_object1(tvb, tree, l)
	local sub = tree:add(f.object, tvb(l.at, l.size))
	add_identity(tvb, sub, l.at)
	add_value(tvb, sub, l.at + 24)
	add_rate_of(tvb, sub, l)
	add_state(tvb, sub, l.at + 32)
	local tag = sub:add(f.tag, tvb(l.at + 40, 8))
	if tvb(l.at + 5, 1):uint() % 16 >= 8 then tag:add_proto_expert_info(e.unverified) end
end

local function add_option(tvb, tree, option)
	local kind, at, size, room = option[1], option[2], option[3], option[4]
	local sub = tree:add(f.option, tvb(at, OPT_HDR + room))
	sub:add(f.option_type, tvb(at, 2))
	sub:add(f.option_length, tvb(at + 2, 2))
	if kind == RELATIVE then
		sub:set_text("Relative value")
		add_value(tvb, sub, at + OPT_HDR)
	elseif kind == TAG then
		sub:set_text("Tag")
		sub:add(f.tag, tvb(at + OPT_HDR, 8)):add_proto_expert_info(e.unverified)
	else
		sub:append_text(string.format(" (unknown, %d bytes: passed over)", size))
	end
end

local function add_object2(tvb, tree, l)
	local sub = tree:add(f.object, tvb(l.at, l.size))
	sub:add(f.length, tvb(l.at, 2))
	sub:add(f.class, tvb(l.at + 2, 2))
	add_identity(tvb, sub, l.at + OBJ_HDR)
	add_rate_of(tvb, sub, l)
	add_state(tvb, sub, l.at + 36)
	for _, option in ipairs((options_of(tvb, l))) do add_option(tvb, sub, option) end
end

local function add_extension(tvb, tree, l, len)
	local sub = tree:add(f.ext, tvb(l.ext, len - l.ext))
	sub:add(f.ext_version, tvb(l.ext, 1))
	sub:add(f.ext_checksum, tvb(l.ext + 2, 2))
	for _, object in ipairs(l.objects) do
		if object[1] == l.at then
			add_object2(tvb, sub, l)
		else
			sub:add(f.foreign, tvb(object[1], object[2]))
		end
	end
end

local function describe(tvb, pinfo, root, cut, ends)
	local len = tvb:len()
	local tree = root:add(paqm, tvb())
	pinfo.cols.protocol = "P-AQM"
	if cut then
		pinfo.cols.info = "P-AQM feedback (captured in part)"
		tree:add_proto_expert_info(e.cut)
		return
	end
	local l = len >= ICMP_HDR and layout(tvb, len, ends) or {}
	local refusal = refusal_of(tvb, len, l, ends)
	if refusal ~= "msg_length" and l.at then
		if l.version == 1 then
			tree:add(f.value, tvb(4, 4))
			if l.quote > 0 then add_quote(tvb, tree, l, ends) end
			if tvb(l.at + 4, 1):uint() == 1 then add_object1(tvb, tree, l) end
		else
			tree:add(f.words, tvb(ends and 4 or 5, 1))
			add_quote(tvb, tree, l, ends)
			add_extension(tvb, tree, l, len)
		end
	end
	if refusal then
		tree:add(f.refusal, refusal):set_generated()
		tree:add_proto_expert_info(e[refusal])
		pinfo.cols.info = "P-AQM feedback, refused: " .. refusal
		return
	end
	local seq = tvb(l.at + (l.version == 1 and 20 or 24), 4):uint()
	local info = string.format("P-AQM feedback, round %d: %s", seq,
		rate_text(rate_of(tvb, l):tonumber()))
	local value = l.version == 1 and l.at + 24
	if l.version ~= 1 then
		for _, option in ipairs((options_of(tvb, l))) do
			if option[1] == RELATIVE then value = option[2] + OPT_HDR end
		end
	end
	if value then info = info .. ", " .. ecf_text(tvb(value, 4):float()) end
	pinfo.cols.info = info
end

-- Ours looks when Wireshark's own dissectors are done. It must not call them: what they throw where
-- a packet is cut passes through Lua, which after two hundred of that has no room for calls left.
local icmp, icmpv6 = Field.new("icmp"), Field.new("icmpv6")
local ip6_src, ip6_dst = Field.new("ipv6.src"), Field.new("ipv6.dst")

local function is_ours(tvb)
	local len = tvb:captured_len()
	if len == 0 then return false end
	local always = TYPES[tvb(0, 1):uint()]
	if always or always == nil or len < ICMP_HDR then return always == true end
	local l = layout(tvb, len)
	return l.at ~= nil or l.other == true
end

-- Both addresses of the packet that is looked at, the innermost if it is in a tunnel: of what
-- messages of our types quote no address is taken.
local function addresses()
	local src, dst = {ip6_src()}, {ip6_dst()}
	if #src == 0 or #dst == 0 then return nil end
	return src[#src].range:bytes() .. dst[#dst].range:bytes()
end

function paqm.dissector(frame, pinfo, root)
	local cut = frame:captured_len() < frame:reported_len()
	local four, six = icmp(), icmpv6()
	if four then
		local tvb = four.range:tvb()
		if is_ours(tvb) then describe(tvb, pinfo, root, cut) end
	elseif six then
		local tvb, ends = six.range:tvb(), addresses()
		local icmp_type = tvb:captured_len() > 0 and tvb(0, 1):uint()
		if ends and (icmp_type == TYPE6 or icmp_type == TYPE6_OLD) then
			describe(tvb, pinfo, root, cut, ends)
		end
	end
end

register_postdissector(paqm)

-- Rates that travel with the media (carrier in-band): in RTP header extensions, in probes, and as
-- receivers return them by RTCP APP.

local rate = Proto("paqm_rate", "P-AQM Rate")
local FIELD, FIELD_MAGIC, PROBE, PROBE_LEN = 15, 0x50415131, 0x0f, 20

local r = {
	field = ProtoField.bytes("paqm_rate.field", "Field"),
	kind = ProtoField.string("paqm_rate.kind", "Carried by"),
	rate = ProtoField.float("paqm_rate.rate", "Rate (bit/s)"),
	router = ProtoField.uint16("paqm_rate.router", "Lowered by", base.HEX),
	period = ProtoField.uint8("paqm_rate.period", "Its period (20 ms)"),
	nonce = ProtoField.uint32("paqm_rate.nonce", "Nonce", base.HEX),
	seq = ProtoField.uint32("paqm_rate.seq", "Sequence"),
	grade = ProtoField.uint8("paqm_rate.grade", "Load (grade)", base.DEC,
		{[0] = "not said", [1] = "low", [2] = "high", [3] = "overload"}, 3),
	congested = ProtoField.bool("paqm_rate.congested", "Nearly full", 8, nil, 4),
	searches = ProtoField.bool("paqm_rate.searches", "Law searches", 8, nil, 8),
}
rate.fields = {r.field, r.kind, r.rate, r.router, r.period, r.nonce, r.seq, r.grade, r.congested,
	r.searches}

local function field_ok(tvb, at)
	return tvb(at, 4):uint() == FIELD_MAGIC and value_ok(tvb(at + 4, 4):float())
end

-- Offset of the field among RFC 8285 elements, or nil.
local function element_at(tvb, at, stop, two)
	while at < stop do
		local head = tvb(at, 1):uint()
		local size
		if head == 0 then
			at = at + 1
		else
			if two then
				if stop - at < 2 then return nil end
				size = tvb(at + 1, 1):uint()
				at = at + 2
			else
				if head < 16 or head >= 240 then return nil end
				size = head % 16 + 1
				at = at + 1
			end
			if size > stop - at then return nil end
			if size == FIELD and field_ok(tvb, at) then return at end
			at = at + size
		end
	end
	return nil
end

local function field_at(tvb)
	local len = tvb:len()
	if len == 0 then return nil end
	local first = tvb(0, 1):uint()
	if first == PROBE then
		return len >= PROBE_LEN and field_ok(tvb, 1) and 1 or nil
	end
	-- version 2 with a header extension
	if first < 0x90 or first > 0xbf or math.floor(first / 16) % 2 == 0 or len < 16 then
		return nil
	end
	local at = 12 + first % 16 * 4
	if at + 4 > len then return nil end
	local profile, words = tvb(at, 2):uint(), tvb(at + 2, 2):uint()
	local stop = math.min(at + 4 + 4 * words, len)
	if profile == 0xbede then return element_at(tvb, at + 4, stop, false) end
	if math.floor(profile / 16) == 0x100 then return element_at(tvb, at + 4, stop, true) end
	return nil
end

local function add_rate(tvb, at, tree, kind, nonce_at)
	tree:add(r.kind, kind):set_generated()
	tree:add(r.rate, tvb(at, 4)):append_text(" = " .. rate_text(tvb(at, 4):float()))
	tree:add(r.router, tvb(at + 4, 2))
	tree:add(r.period, tvb(at + 6, 1)):append_text(
		string.format(" = %d ms", tvb(at + 6, 1):uint() * 20))
	tree:add(r.nonce, tvb(nonce_at, 4))
end

local udp_payload = Field.new("udp.payload")
local app_name, app_data = Field.new("rtcp.app.name"), Field.new("rtcp.app.data")

function rate.dissector(_, pinfo, root)
	local payload, name, data = udp_payload(), app_name(), app_data()
	if name and data and name.value == "PAQM" and (data.range:len() == 16 or data.range:len() == 20) then
		local tvb = data.range:tvb()
		local tree = root:add(rate, data.range)
		add_rate(tvb, 0, tree, tvb(7, 1):uint() == 1 and "return of a probe" or
			"return of an element", 8)
		tree:add(r.seq, tvb(12, 4))
		if tvb:len() == 20 then -- the field had a supplement
			for _, said in ipairs({r.grade, r.congested, r.searches}) do
				tree:add(said, tvb(16, 1))
			end
		end
		return
	end
	if not payload then return end
	local tvb = payload.range:tvb()
	local at = field_at(tvb)
	if not at then return end
	local tree = root:add(rate, tvb(at, FIELD))
	tree:add(r.field, tvb(at, FIELD))
	add_rate(tvb, at + 4, tree, at == 1 and "probe" or "RTP header extension", at + 11)
	if at == 1 then
		tree:add(r.seq, tvb(16, 4))
		pinfo.cols.protocol = "P-AQM"
		pinfo.cols.info = "P-AQM probe: " .. rate_text(tvb(5, 4):float())
	end
end

register_postdissector(rate)
