// A client for tests that says exactly what it is told, byte by byte, and shows each
// token of a reply as one line of text. It shares nothing with the product's client.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/transport.h"
#include "sim/value.h"
#include "sim/wire/bytes.h"
#include "sim/wire/hex_test.h"

namespace mssql_cdc::sim::wire {

struct RawLogin {
  std::uint32_t tds_version = 0x74000004;
  std::uint32_t packet_size_bytes = 0;
  std::u16string user = u"sa";
  std::u16string password = u"secret";
  std::u16string database = u"";
  std::vector<std::uint8_t> features = {};  // With their terminator; empty: none.
  std::uint8_t options2 = 0;
};

class RawClient {
 public:
  explicit RawClient(std::unique_ptr<net::Transport> transport)
      : transport_(std::move(transport)) {}

  net::Transport& transport() { return *transport_; }
  std::unique_ptr<net::Transport> TakeTransport() { return std::move(transport_); }
  void SetTransport(std::unique_ptr<net::Transport> transport) {
    transport_ = std::move(transport);
  }

  bool SendRaw(std::string_view bytes) {
    return transport_
        ->Write({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()})
        .ok();
  }
  // One message in as many packets as its size asks for.
  bool Send(std::uint8_t type, std::string_view body, std::uint8_t status = 0) {
    constexpr std::size_t kContent = 4088;
    std::string bytes;
    do {
      const std::string_view part = body.substr(0, kContent);
      body.remove_prefix(part.size());
      ByteBuffer packet;
      packet.U8(type);
      packet.U8(body.empty() ? static_cast<std::uint8_t>(status | 1) : status);
      packet.U16Be(static_cast<std::uint16_t>(part.size() + 8));
      packet.U32(0);
      packet.Raw(part);
      bytes += packet.bytes();
    } while (!body.empty());
    return SendRaw(bytes);
  }
  bool SendPrelogin(std::uint8_t encryption) {
    ByteBuffer body;
    body.Raw(std::span<const std::uint8_t>(FromHex("00 000B 0006 01 0011 0001 FF")));
    body.Fill(6, 9);
    body.U8(encryption);
    return Send(0x12, body.bytes());
  }
  bool SendLogin(const RawLogin& login) { return Send(0x10, Login7(login)); }
  bool SendBatch(std::u16string_view sql, std::uint8_t status = 0) {
    ByteBuffer body;
    WriteHeaders(body);
    body.Raw(sql);
    return Send(0x01, body.bytes(), status);
  }
  // `hex` is what follows ALL_HEADERS.
  bool SendCall(std::string_view hex, std::uint8_t status = 0) {
    ByteBuffer body;
    WriteHeaders(body);
    body.Raw(std::span<const std::uint8_t>(FromHex(hex)));
    return Send(0x03, body.bytes(), status);
  }
  bool SendTransaction(std::string_view hex) {
    ByteBuffer body;
    WriteHeaders(body);
    body.Raw(std::span<const std::uint8_t>(FromHex(hex)));
    return Send(0x0E, body.bytes());
  }

  // The content of one message; nullopt: the server closed the connection.
  std::optional<std::string> ReadMessage() {
    std::string content;
    for (;;) {
      std::string header;
      if (!ReadExactly(8, header)) return std::nullopt;
      const std::size_t size =
          static_cast<std::size_t>(static_cast<std::uint8_t>(header[2]) << 8 |
                                   static_cast<std::uint8_t>(header[3]));
      largest_packet_bytes_ = std::max(largest_packet_bytes_, size);
      std::string body;
      if (!ReadExactly(size - 8, body)) return std::nullopt;
      content += body;
      if ((header[1] & 1) != 0) return content;
    }
  }
  // The tokens of one message, such as "DONE 0010 3", "ERROR 208", "ROW 0105"; of rows
  // the bytes, since no type is understood but int and nvarchar.
  std::vector<std::string> ReadTokens() {
    const std::optional<std::string> message = ReadMessage();
    if (!message) return {"CLOSED"};
    return Tokens(*message);
  }
  std::size_t largest_packet_bytes() const { return largest_packet_bytes_; }

  static std::string Login7(const RawLogin& login) {
    constexpr std::uint16_t kFixed = 94;
    ByteBuffer table;
    ByteBuffer data;
    const auto text = [&](std::u16string_view value) {
      table.U16(static_cast<std::uint16_t>(kFixed + data.bytes().size()));
      table.U16(static_cast<std::uint16_t>(value.size()));
      data.Raw(value);
    };
    std::u16string password = login.password;
    for (char16_t& unit : password) {
      unit =
          static_cast<char16_t>(((unit & 0x0F0F) << 4 | (unit & 0xF0F0) >> 4) ^ 0xA5A5);
    }
    text(u"host");
    text(login.user);
    text(password);
    text(u"test");
    text(u"server");
    const auto pointer = static_cast<std::uint16_t>(kFixed + data.bytes().size());
    table.U16(pointer);
    table.U16(4);
    data.U32(pointer + 4u);
    data.Raw(std::span<const std::uint8_t>(login.features));
    text(u"library");
    text(u"");
    text(login.database);
    ByteBuffer out;
    out.U32(static_cast<std::uint32_t>(kFixed + data.bytes().size()));
    out.U32(login.tds_version);
    out.U32(login.packet_size_bytes);
    out.Fill(13, 0);
    out.U8(login.options2);
    out.U8(0);
    out.U8(login.features.empty() ? 0 : 0x10);
    out.Fill(8, 0);
    out.Raw(table.bytes());
    out.Fill(kFixed - out.bytes().size(), 0);
    out.Raw(data.bytes());
    return out.bytes();
  }

  static std::vector<std::string> Tokens(const std::string& message) {
    std::vector<std::string> tokens;
    ByteReader reader(
        {reinterpret_cast<const std::uint8_t*>(message.data()), message.size()});
    std::vector<std::uint8_t> types;
    while (reader.ok() && reader.remaining() > 0) {
      tokens.push_back(OneToken(reader, types));
    }
    if (!reader.ok()) tokens.push_back("CUT");
    return tokens;
  }

 private:
  static void WriteHeaders(ByteBuffer& body) {
    for (const std::uint8_t byte :
         FromHex("16000000120000000200000000000000000001000000")) {
      body.U8(byte);
    }
  }

  bool ReadExactly(std::size_t size, std::string& into) {
    into.assign(size, '\0');
    std::size_t got = 0;
    while (got < size) {
      const Result<std::size_t> count = transport_->Read(
          {reinterpret_cast<std::uint8_t*>(into.data()) + got, size - got});
      if (!count.ok() || count.value() == 0) return false;
      got += count.value();
    }
    return true;
  }

  static std::string Text(ByteReader& reader, std::size_t units) {
    return Utf8(reader.Utf16(units));
  }

  static std::string OneToken(ByteReader& reader, std::vector<std::uint8_t>& types) {
    const std::uint8_t token = reader.U8();
    switch (token) {
      case 0x79:
        return "RETURNSTATUS " + std::to_string(reader.I32());
      case 0x81:
        return Metadata(reader, types);
      case 0xD1: {
        std::string row = "ROW";
        for (const std::uint8_t type : types) row += ' ' + OneValue(reader, type);
        return row;
      }
      case 0xAC: {
        std::string text = "RETURNVALUE " + std::to_string(reader.U16());
        text += ' ' + Text(reader, reader.U8());
        reader.Take(7);
        const std::uint8_t type = TypeInfo(reader);
        return text + ' ' + OneValue(reader, type);
      }
      case 0xAA:
      case 0xAB:
        return (token == 0xAA ? "ERROR " : "INFO ") + ServerMessage(reader);
      case 0xFD:
      case 0xFE:
      case 0xFF: {
        const char* name = token == 0xFD   ? "DONE "
                           : token == 0xFE ? "DONEPROC "
                                           : "DONEINPROC ";
        std::string status = std::to_string(reader.U16());
        reader.U16();
        return name + status + ' ' + std::to_string(reader.U64());
      }
      case 0xE3:
        return EnvChange(reader);
      case 0xAD: {
        const std::uint16_t size = reader.U16();
        const auto raw = reader.Take(size);
        return "LOGINACK " + (size > 5 ? HexUpper(raw.subspan(1, 4)) : "short");
      }
      case 0xAE: {
        std::string text = "FEATUREEXTACK";
        for (std::uint8_t id = reader.U8(); id != 0xFF && reader.ok();
             id = reader.U8()) {
          text += ' ' + std::to_string(id) + ':' + HexUpper(reader.Take(reader.U32()));
        }
        return text;
      }
      case 0xEE:
        reader.Take(reader.U32());
        return "FEDAUTHINFO";
      default:
        reader.Fail();
        return "UNKNOWN " + std::to_string(token);
    }
  }

  // The number of an ERROR or INFO.
  static std::string ServerMessage(ByteReader& reader) {
    reader.U16();
    const std::string number = std::to_string(reader.I32());
    reader.U16();
    Text(reader, reader.U16());
    Text(reader, reader.U8());
    Text(reader, reader.U8());
    reader.I32();
    return number;
  }

  static std::string EnvChange(ByteReader& outer) {
    ByteReader reader(outer.Take(outer.U16()));
    const std::uint8_t kind = reader.U8();
    std::string text = "ENVCHANGE " + std::to_string(kind);
    if (kind <= 4) return text + ' ' + Text(reader, reader.U8());
    if (kind == 18) return text;
    return text + ' ' + HexUpper(reader.Take(reader.U8()));
  }

  static std::uint8_t TypeInfo(ByteReader& reader) {
    const std::uint8_t type = reader.U8();
    if (type == 0x26) reader.U8();
    if (type == 0xE7) reader.Take(7);
    return type;
  }

  static std::string Metadata(ByteReader& reader, std::vector<std::uint8_t>& types) {
    std::string text = "COLMETADATA";
    types.clear();
    const std::uint16_t count = reader.U16();
    for (std::uint16_t i = 0; i < count && reader.ok(); ++i) {
      reader.Take(6);
      types.push_back(TypeInfo(reader));
      text += ' ' + Text(reader, reader.U8());
    }
    return text;
  }

  static std::string OneValue(ByteReader& reader, std::uint8_t type) {
    if (type == 0x38) return std::to_string(reader.I32());
    if (type == 0x26) {
      const std::uint8_t size = reader.U8();
      return size == 0 ? "NULL"
                       : std::to_string(static_cast<std::int64_t>(reader.Low(size)));
    }
    const std::uint16_t size = reader.U16();
    return size == 0xFFFF ? "NULL" : Text(reader, size / 2u);
  }

  std::unique_ptr<net::Transport> transport_;
  std::size_t largest_packet_bytes_ = 0;
};

}  // namespace mssql_cdc::sim::wire
