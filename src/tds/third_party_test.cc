// Messages that other people published, each with its origin: examples of MS-TDS
// chapter 4 (learn.microsoft.com/openspecs/windows_protocols/ms-tds, numbered as in its
// revision of 2026), vectors of python-tds, and what a real server sent in a capture of
// nDPI. Of replies every token is compared; of requests, which our client words in its
// own way, the fields that must agree.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tds/login7.h"
#include "tds/packet.h"
#include "tds/prelogin.h"
#include "tds/requests.h"
#include "tds/test_bytes.h"
#include "tds/tokens.h"

namespace mssql_cdc::tds {
namespace {

using test::Hex;
using test::Join;
using test::Utf16;
using test::Wire;

Wire PayloadOf(const Wire& packet) {
  EXPECT_EQ(packet[2] * 256u + packet[3], packet.size())
      << "a byte is missing or too many";
  return Wire(packet.begin() + kPacketHeaderSizeBytes, packet.end());
}

// The tokens of a reply of one packet, which has no rows.
std::vector<Token> TokensOf(const Wire& packet) {
  const Wire payload = PayloadOf(packet);
  std::vector<Token> tokens;
  Reader in(payload);
  while (in.offset() < payload.size()) {
    const auto token = DecodeToken(in);
    if (!token.ok() || !token.value()) {
      ADD_FAILURE() << "no token at byte " << in.offset();
      break;
    }
    tokens.push_back(*token.value());
  }
  return tokens;
}

const Skipped kLanguage{TokenId::kEnvChange};
const CollationChanged kCollation{{0x09, 0x04, 0xD0, 0x00, 0x34}};

ServerMessage Info(std::int32_t number, std::uint8_t state, std::string text,
                   std::string server, std::uint32_t line) {
  return {false, number, state, 0, std::move(text), std::move(server), "", line};
}

Wire LanguageWire() {
  return Join(Hex("E3 1700 02 0A"), Utf16("us_english"), Hex("00"));
}

Wire PacketSizeWire(std::string_view size) {
  return Join(Hex("E3 1300 04 04"), Utf16(size), Hex("04"), Utf16("4096"));
}

Wire LoginAckWire(std::string_view tds_version, std::string_view version) {
  return Join(Hex("AD 3600 01"), Hex(tds_version), Hex("16"),
              Utf16("Microsoft SQL Server"), Hex("0000 0000"), Hex(version));
}

const Wire kDoneWire = Hex("FD 0000 0000 0000000000000000");

TEST(ThirdPartyReplies, MsTds44LoginResponse) {
  const Wire wire =
      Join(Hex("04 01 0161 0000 01 00  E3 1B00 01 06"), Utf16("master"), Hex("06"),
           Utf16("master"), Hex("AB 5800 45160000 02 00 2500"),
           Utf16("Changed database context to 'master'."), Hex("00 00 00000000"),
           Hex("E3 0800 07 05 0904D00034 00"), LanguageWire(), PacketSizeWire("4096"),
           Hex("AB 5C00 47160000 01 00 2700"),
           Utf16("Changed language setting to us_english."), Hex("00 00 00000000"),
           LoginAckWire("72090002", "00000000"), kDoneWire);
  EXPECT_EQ(TokensOf(wire),
            (std::vector<Token>{
                DatabaseChanged{"master"},
                Info(5701, 2, "Changed database context to 'master'.", "", 0),
                kCollation, kLanguage, PacketSizeChanged{4096},
                Info(5703, 1, "Changed language setting to us_english.", "", 0),
                LoginAck{1, 0x72090002, "Microsoft SQL Server", 0, 0, 0}, Done{}}));
}

TEST(ThirdPartyReplies, MsTds45LoginResponseWithFederatedAuthentication) {
  const Wire nonce_and_signature =
      Hex("C908464E58490C718072CD69F0EC3DE2 F6ED758C777D9CB8BB874A9C9080A4EE"
          "40B607710EA83C0ED7DE14DEF38B65C2 068CF951D3BC325515A5E4A245627880");
  const Wire wire = Join(
      Hex("04 01 01BC 014A 01 00  E3 1B00 01 06"), Utf16("master"), Hex("06"),
      Utf16("master"), Hex("AB 6200 45160000 02 00 2500"),
      Utf16("Changed database context to 'master'."), Hex("05"), Utf16("cloud"),
      Hex("00 01000000"), Hex("E3 0800 07 05 0904D00034 00"), LanguageWire(),
      Hex("AB 6600 47160000 01 00 2700"),
      Utf16("Changed language setting to us_english."), Hex("05"), Utf16("cloud"),
      Hex("00 01000000"), LoginAckWire("74000004", "0B0008CB"), PacketSizeWire("4096"),
      Hex("AE 02 40000000"), nonce_and_signature, Hex("FF"), kDoneWire);
  EXPECT_EQ(
      TokensOf(wire),
      (std::vector<Token>{
          DatabaseChanged{"master"},
          Info(5701, 2, "Changed database context to 'master'.", "cloud", 1),
          kCollation, kLanguage,
          Info(5703, 1, "Changed language setting to us_english.", "cloud", 1),
          LoginAck{1, kTds74, "Microsoft SQL Server", 11, 0, 2251},
          PacketSizeChanged{4096}, FeatureExtAck{{{2, nonce_and_signature}}}, Done{}}));
}

TEST(ThirdPartyReplies, MsTds49RpcServerResponse) {
  EXPECT_EQ(
      TokensOf(Hex("04 01 0027 0000 01 00  FF 1100 C100 0100000000000000"
                   "79 00000000  FE 0000 E000 0000000000000000")),
      (std::vector<Token>{Done{TokenId::kDoneInProc, kDoneMore | kDoneCount, 0xC1, 1},
                          ReturnStatus{0}, Done{TokenId::kDoneProc, 0, 0xE0, 0}}));
}

TEST(ThirdPartyReplies, MsTds418SessionState) {
  EXPECT_EQ(TokensOf(Hex("04 01 0032 0000 01 00  FD 0100 BE00 0000000000000000"
                         "E4 0B000000 01000000 01 09 04 FFFFFFFF"
                         "FD 0000 FD00 0000000000000000")),
            (std::vector<Token>{Done{TokenId::kDone, kDoneMore, 0xBE, 0},
                                Skipped{TokenId::kSessionState},
                                Done{TokenId::kDone, 0, 0xFD, 0}}));
}

// A gateway's DONEINPROCs come before the login is acknowledged.
TEST(ThirdPartyReplies, MsTds421FeatureExtAckWithAzureSqlSupport) {
  const Wire one = Hex("FF 1100 C100 0100000000000000");
  const Wire none = Hex("FF 1100 C100 0000000000000000");
  const Wire other = Hex("FF 0100 C000 0000000000000000");
  const Wire session =
      Join(Hex("00 09 00 60 81 14 FF E7 FF FF 00 02 02 07 01 04 01 00 05 04 FF FF FF "
               "FF 06 01"
               "00 07 01 02 08 08 00 00 00 00 00 00 00 00 09 04 FF FF FF FF 0B 47"),
           Utf16("5D7ED70B-B92E-412B-B32F-760CD74DB92"), Hex("43"));
  const Wire wire =
      Join(Hex("04 01 02C3 0077 01 00"), one, none, other, one, none, other, one, one,
           none, other, one, none, other, one, Hex("E3 1B00 01 06"), Utf16("testdb"),
           Hex("06"), Utf16("master"), Hex("AB 6600 45160000 02 00 2500"),
           Utf16("Changed database context to 'testdb'."), Hex("07"), Utf16("testsvr"),
           Hex("00 01000000 E3 0800 07 05 0904D00034 00"), LanguageWire(),
           Hex("AB 6A00 47160000 01 00 2700"),
           Utf16("Changed language setting to us_english."), Hex("07"),
           Utf16("testsvr"), Hex("00 01000000"), LoginAckWire("74000004", "0C0003E8"),
           PacketSizeWire("8000"), Hex("AE 01 77000000"), session,
           Hex("04 01000000 01  05 01000000 01  08 01000000 01  FF"), kDoneWire);
  const std::vector<Token> tokens = TokensOf(wire);
  ASSERT_EQ(tokens.size(), 23u);
  EXPECT_EQ(tokens[0],
            Token(Done{TokenId::kDoneInProc, kDoneMore | kDoneCount, 0xC1, 1}));
  EXPECT_EQ(tokens[12], Token(Done{TokenId::kDoneInProc, kDoneMore, 0xC0, 0}));
  EXPECT_EQ(std::vector<Token>(tokens.begin() + 14, tokens.end()),
            (std::vector<Token>{
                DatabaseChanged{"testdb"},
                Info(5701, 2, "Changed database context to 'testdb'.", "testsvr", 1),
                kCollation, kLanguage,
                Info(5703, 1, "Changed language setting to us_english.", "testsvr", 1),
                LoginAck{1, kTds74, "Microsoft SQL Server", 12, 0, 1000},
                PacketSizeChanged{8000},
                FeatureExtAck{{{1, session}, {4, {1}}, {5, {1}}, {8, {1}}}}, Done{}}));
}

// python-tds, tests/unit_test.py, test_login: what a SQL Server 2008 R2 answered.
TEST(ThirdPartyReplies, PytdsLogin) {
  const Wire prelogin = Hex(
      "04 01 002B 0000 01 00  00 001A 0006  01 0020 0001  02 0021 0001  03 0022 0000"
      "04 0022 0001  FF 0A0015880000 02 00 00");
  const auto answer = DecodePrelogin(PayloadOf(prelogin));
  ASSERT_TRUE(answer.ok()) << answer.error().Text();
  EXPECT_EQ(answer.value(), (PreloginReply{10, 0, 5512, kEncryptNotSupported, false}));

  const Wire login =
      Join(Hex("04 01 01AD 005A 01 00  E3 2F00 01 10"), Utf16("SubmissionPortal"),
           Hex("06"), Utf16("master"), Hex("AB 7E00 45160000 02 00 2F00"),
           Utf16("Changed database context to 'SubmissionPortal'."), Hex("09"),
           Utf16("MSSQLHV30"), Hex("00 01000000  E3 0800 07 05 0904000100 00"),
           LanguageWire(), Hex("AB 6E00 47160000 01 00 2700"),
           Utf16("Changed language setting to us_english."), Hex("09"),
           Utf16("MSSQLHV30"), Hex("00 01000000"), LoginAckWire("730B0003", "0A001588"),
           PacketSizeWire("4096"), kDoneWire);
  EXPECT_EQ(
      TokensOf(login),
      (std::vector<Token>{
          DatabaseChanged{"SubmissionPortal"},
          Info(5701, 2, "Changed database context to 'SubmissionPortal'.", "MSSQLHV30",
               1),
          CollationChanged{{0x09, 0x04, 0x00, 0x01, 0x00}}, kLanguage,
          Info(5703, 1, "Changed language setting to us_english.", "MSSQLHV30", 1),
          LoginAck{1, 0x730B0003, "Microsoft SQL Server", 10, 0, 5512},
          PacketSizeChanged{4096}, Done{}}));

  EXPECT_EQ(TokensOf(Hex("04 01 0023 005A 01 00  E3 0B00 08 08 010000005A000000 00"
                         "FD 0000 FD00 0000000000000000")),
            (std::vector<Token>{TransactionChanged{0x5A00000001},
                                Done{TokenId::kDone, 0, 0xFD, 0}}));
}

// The same, test_prelogin_parsing: the option table does not end where it should.
TEST(ThirdPartyReplies, PytdsPreloginsWithABadOffset) {
  const std::string table =
      "00 001A 0006  01 0020 0001  02 0021 0001  03 0022 0000  04 0022 0001";
  for (const char* rest : {"00 0A0015880000 02 00 00", "00 000000000000 02 00 00"}) {
    EXPECT_FALSE(DecodePrelogin(Hex(table + rest)).ok()) << rest;
  }
}

// tests/pcap/mssql_tds.pcap of nDPI 4.2 (github.com/ntop/nDPI, sha256 8de89c7f...);
// frames with rows are wire cases.
TEST(ThirdPartyReplies, NdpiCapture) {
  // 2: two statements that count nothing.
  EXPECT_EQ(TokensOf(Hex("04 01 0022 0035 01 00  FD 0100 F900 0000000000000000"
                         "FD 0000 BA00 0000000000000000")),
            (std::vector<Token>{Done{TokenId::kDone, kDoneMore, 0xF9, 0},
                                Done{TokenId::kDone, 0, 0xBA, 0}}));
  // 12, 14 and 25: sp_prepexec of statements that return no rows, 14 with a count.
  for (const char* done :
       {"FF 0100 C600 0000000000000000", "FF 1100 C300 0100000000000000",
        "FF 0100 C700 0000000000000000"}) {
    const std::vector<Token> tokens =
        TokensOf(Join(Hex("04 01 0039 0033 01 00"), Hex(done), Hex("79 00000000"),
                      Hex("AC 0000 00 01 00000000 0000 26 04 04 01000000"),
                      Hex("FE 0000 E000 0000000000000000")));
    ASSERT_EQ(tokens.size(), 4u);
    EXPECT_EQ(tokens[1], Token(ReturnStatus{0}));
    EXPECT_EQ(tokens[2], Token(Skipped{TokenId::kReturnValue}));
    EXPECT_EQ(tokens[3], Token(Done{TokenId::kDoneProc, 0, 0xE0, 0}));
  }
  // 16: two calls in one request; bit 0x80 of DONEPROC says that another one follows.
  const Done updated{TokenId::kDoneInProc, kDoneMore | kDoneCount, 0xC3, 1};
  EXPECT_EQ(TokensOf(Hex("04 01 0050 0033 01 00"
                         "FF 1100 C300 0100000000000000 79 00000000 79 00000000"
                         "FE 8100 E000 0000000000000000"
                         "FF 1100 C300 0100000000000000 79 00000000 79 00000000"
                         "FE 0000 E000 0000000000000000")),
            (std::vector<Token>{updated, ReturnStatus{0}, ReturnStatus{0},
                                Done{TokenId::kDoneProc, 0x81, 0xE0, 0}, updated,
                                ReturnStatus{0}, ReturnStatus{0},
                                Done{TokenId::kDoneProc, 0, 0xE0, 0}}));
  // 6: TDS 7.1, where a DONE has four bytes less, so that it never becomes whole.
  const Wire old = PayloadOf(Hex("04 01 0011 013A 01 00  FD 0000 D500 00000000"));
  Reader in(old);
  const auto token = DecodeToken(in);
  ASSERT_TRUE(token.ok());
  EXPECT_FALSE(token.value().has_value());
}

std::uint32_t Le32(const Wire& bytes, std::size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 |
         static_cast<std::uint32_t>(bytes[at + 3]) << 24;
}

// The bytes of a text that the LOGIN7 entry at `entry` points to.
Wire LoginText(const Wire& login, std::size_t entry) {
  const std::uint32_t place = Le32(login, entry);
  const auto begin = login.begin() + static_cast<long>(place & 0xFFFF);
  return Wire(begin, begin + static_cast<long>((place >> 16) * 2));
}

// MS-TDS 4.2. It is of TDS 7.2, without features, by a client of another name.
TEST(ThirdPartyRequests, MsTds42LoginRequest) {
  const Wire example = PayloadOf(Join(
      Hex("10 01 0090 0000 01 00  88000000 02000972 00100000 00000007 00010000 00000000"
          "E0 03 00 00 00000000 09040000 5E000800 6E000200 72000000 72000700 80000000"
          "80000000 80000400 88000000 88000000 00508BE2B78F 88000000 88000000 88000000"
          "00000000"),
      Utf16("skostov1"), Utf16("sa"), Utf16("OSQL-32"), Utf16("ODBC")));
  Login7 login;
  login.workstation = "skostov1";
  login.user = "sa";
  login.application = "OSQL-32";
  const auto encoded = EncodeLogin7(login);
  ASSERT_TRUE(encoded.ok());
  const Wire& ours = encoded.value();
  for (const Wire& wire : {example, ours}) EXPECT_EQ(Le32(wire, 0), wire.size());
  struct {
    const char* name;
    std::size_t at;
  } const numbers[] = {{"PacketSize", 8}, {"ConnectionID", 20}, {"ClientTimeZone", 28}};
  for (const auto& [name, at] : numbers) {
    EXPECT_EQ(Le32(ours, at), Le32(example, at)) << name;
  }
  // OptionFlags1, OptionFlags2 and TypeFlags; of the third options we set the
  // extension.
  EXPECT_EQ(Wire(ours.begin() + 24, ours.begin() + 27),
            Wire(example.begin() + 24, example.begin() + 27));
  struct {
    const char* name;
    std::size_t entry;
  } const texts[] = {{"HostName", 36}, {"UserName", 40},   {"Password", 44},
                     {"AppName", 48},  {"ServerName", 52}, {"Language", 64},
                     {"Database", 68}, {"AtchDBFile", 82}, {"ChangePassword", 86}};
  for (const auto& [name, entry] : texts) {
    EXPECT_EQ(LoginText(ours, entry), LoginText(example, entry)) << name;
  }
}

// python-tds, tests/unit_test.py, test_login_generation: the password "testpwd".
TEST(ThirdPartyRequests, PytdsLoginRequest) {
  Login7 login;
  login.workstation = "subdev1";
  login.user = "test";
  login.password = Secret("testpwd");
  login.application = "appname";
  login.server = "servername";
  login.database = "database";
  const auto encoded = EncodeLogin7(login);
  ASSERT_TRUE(encoded.ok());
  const Wire& ours = encoded.value();
  EXPECT_EQ(LoginText(ours, 36), Utf16("subdev1"));
  EXPECT_EQ(LoginText(ours, 40), Utf16("test"));
  EXPECT_EQ(LoginText(ours, 44), Hex("E2A5 F3A5 92A5 E2A5 A2A5 D2A5 E3A5"));
  EXPECT_EQ(LoginText(ours, 48), Utf16("appname"));
  EXPECT_EQ(LoginText(ours, 52), Utf16("servername"));
  EXPECT_EQ(LoginText(ours, 68), Utf16("database"));
  // The first three texts stand where they stand there: their table is as long.
  EXPECT_EQ(Le32(ours, 36), 0x0007005Eu);
  EXPECT_EQ(Le32(ours, 40), 0x0004006Cu);
  EXPECT_EQ(Le32(ours, 44), 0x00070074u);
}

// python-tds, test_submit_plain_query: the same bytes but for the packet's number.
TEST(ThirdPartyRequests, PytdsBatch) {
  const Wire wire =
      FrameMessage(PacketType::kSqlBatch, EncodeBatch("select 5*6", {}), 4096);
  EXPECT_EQ(wire, Join(Hex("01 01 0032 0000 01 00  16000000 12000000 0200"
                           "0000000000000000 01000000"),
                       Utf16("select 5*6")));
}

// MS-TDS 4.8 calls "foo3" by its name with the default of a nameless smallint; our
// calls are all of sp_executesql. The headers agree but for the outstanding requests,
// of which the example has 0 where MS-TDS 2.2.5.3 says 1, and so does the form of a
// parameter.
TEST(ThirdPartyRequests, MsTds48RpcRequest) {
  const Wire example = PayloadOf(
      Join(Hex("03 01 002F 0000 01 00  16000000 12000000 0200 0000000000000001 00000000"
               "0400"),
           Utf16("foo3"), Hex("0000  00 02 26 02 00")));
  RequestContext context;
  context.transaction_descriptor = 0x0100000000000000;
  const Wire ours = EncodeExecuteSql("S", {{"@n", Parameter::Kind::kBigInt}}, context);
  EXPECT_EQ(Wire(ours.begin(), ours.begin() + 18),
            Wire(example.begin(), example.begin() + 18));
  EXPECT_EQ(Le32(ours, 18), 1u);
  EXPECT_EQ(Le32(example, 18), 0u);
  // Name and flags; then {name, status, type with its size, size, value}.
  EXPECT_EQ(Wire(ours.begin() + 22, ours.begin() + 28), Hex("FFFF 0A00 0000"));
  EXPECT_EQ(Wire(example.begin() + 22, example.end() - 5),
            Join(Hex("0400"), Utf16("foo3"), Hex("0000")));
  EXPECT_EQ(Wire(example.end() - 5, example.end()), Hex("00 02 26 02 00"));
  EXPECT_EQ(Wire(ours.end() - 17, ours.end()),
            Join(Hex("02"), Utf16("@n"), Hex("00 26 08 08 0000000000000000")));
}

// MS-TDS 4.10: a header and nothing else.
TEST(ThirdPartyRequests, MsTds410Attention) {
  EXPECT_EQ(FrameMessage(PacketType::kAttention, {}, 4096),
            Hex("06 01 0008 0000 01 00"));
}

}  // namespace
}  // namespace mssql_cdc::tds
