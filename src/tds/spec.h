// Constants of MS-TDS: names for numbers, nothing else. The one file that the simulator
// may share with the client.

#pragma once

#include <cstdint>

namespace mssql_cdc::tds {

// Packet types (MS-TDS 2.2.3.1.1).
enum class PacketType : std::uint8_t {
  kSqlBatch = 0x01,
  kRpc = 0x03,
  kReply = 0x04,
  kAttention = 0x06,
  kBulkLoad = 0x07,
  kFederatedToken = 0x08,
  kTransactionManager = 0x0E,
  kLogin7 = 0x10,
  kSspi = 0x11,
  kPrelogin = 0x12,
};

// Packet status bits (2.2.3.1.2).
inline constexpr std::uint8_t kStatusEndOfMessage = 0x01;
inline constexpr std::uint8_t kStatusIgnore = 0x02;
inline constexpr std::uint8_t kStatusResetConnection = 0x08;
inline constexpr std::uint8_t kStatusResetConnectionKeepTransaction = 0x10;

inline constexpr std::uint8_t kPacketHeaderSizeBytes = 8;

// TDS versions as LOGIN7 carries them, little-endian.
inline constexpr std::uint32_t kTds71 = 0x71000001;
inline constexpr std::uint32_t kTds72 = 0x72090002;
inline constexpr std::uint32_t kTds73 = 0x730B0003;
inline constexpr std::uint32_t kTds74 = 0x74000004;
inline constexpr std::uint32_t kTds80 = 0x08000000;

// PRELOGIN options (2.2.6.5) and the values of ENCRYPTION.
enum class PreloginOption : std::uint8_t {
  kVersion = 0x00,
  kEncryption = 0x01,
  kInstance = 0x02,
  kThreadId = 0x03,
  kMars = 0x04,
  kTraceId = 0x05,
  kFedAuthRequired = 0x06,
  kNonce = 0x07,
  kTerminator = 0xFF,
};
inline constexpr std::uint8_t kEncryptOff = 0x00;
inline constexpr std::uint8_t kEncryptOn = 0x01;
inline constexpr std::uint8_t kEncryptNotSupported = 0x02;
inline constexpr std::uint8_t kEncryptRequired = 0x03;

// LOGIN7 feature extensions (2.2.6.4).
enum class Feature : std::uint8_t {
  kSessionRecovery = 0x01,
  kFedAuth = 0x02,
  kColumnEncryption = 0x04,
  kGlobalTransactions = 0x05,
  kAzureSqlSupport = 0x08,
  kDataClassification = 0x09,
  kUtf8Support = 0x0A,
  kAzureSqlDnsCaching = 0x0B,
  kJson = 0x0D,
  kVector = 0x0E,
  kEnhancedRouting = 0x0F,
  kUserAgent = 0x10,
  kTerminator = 0xFF,
};

// Tokens of a reply (2.2.7).
enum class TokenId : std::uint8_t {
  kOffset = 0x78,
  kReturnStatus = 0x79,
  kColMetadata = 0x81,
  kAltMetadata = 0x88,
  kDataClassification = 0xA3,
  kTabName = 0xA4,
  kColInfo = 0xA5,
  kOrder = 0xA9,
  kError = 0xAA,
  kInfo = 0xAB,
  kReturnValue = 0xAC,
  kLoginAck = 0xAD,
  kFeatureExtAck = 0xAE,
  kRow = 0xD1,
  kNbcRow = 0xD2,
  kAltRow = 0xD3,
  kEnvChange = 0xE3,
  kSessionState = 0xE4,
  kSspi = 0xED,
  kFedAuthInfo = 0xEE,
  kDone = 0xFD,
  kDoneProc = 0xFE,
  kDoneInProc = 0xFF,
};

// DONE status bits (2.2.7.6).
inline constexpr std::uint16_t kDoneMore = 0x0001;
inline constexpr std::uint16_t kDoneError = 0x0002;
inline constexpr std::uint16_t kDoneInTransaction = 0x0004;
inline constexpr std::uint16_t kDoneCount = 0x0010;
inline constexpr std::uint16_t kDoneAttention = 0x0020;
inline constexpr std::uint16_t kDoneServerError = 0x0100;

// ENVCHANGE types (2.2.7.9).
enum class EnvChange : std::uint8_t {
  kDatabase = 1,
  kLanguage = 2,
  kCharset = 3,
  kPacketSize = 4,
  kCollation = 7,
  kBeginTransaction = 8,
  kCommitTransaction = 9,
  kRollbackTransaction = 10,
  kEnlistTransaction = 11,
  kDefectTransaction = 12,
  kMirroringPartner = 13,
  kPromoteTransaction = 15,
  kTransactionManagerAddress = 16,
  kTransactionEnded = 17,
  kResetAck = 18,
  kUserInstance = 19,
  kRouting = 20,
  kEnhancedRouting = 21,
};

// Data types (2.2.5.4).
enum class DataType : std::uint8_t {
  kNull = 0x1F,
  kImage = 0x22,
  kText = 0x23,
  kGuid = 0x24,
  kIntN = 0x26,
  kDate = 0x28,
  kTime = 0x29,
  kDateTime2 = 0x2A,
  kDateTimeOffset = 0x2B,
  kInt1 = 0x30,
  kBit = 0x32,
  kInt2 = 0x34,
  kInt4 = 0x38,
  kDateTime4 = 0x3A,
  kFloat4 = 0x3B,
  kMoney = 0x3C,
  kDateTime = 0x3D,
  kFloat8 = 0x3E,
  kVariant = 0x62,
  kNText = 0x63,
  kBitN = 0x68,
  kDecimalN = 0x6A,
  kNumericN = 0x6C,
  kFloatN = 0x6D,
  kMoneyN = 0x6E,
  kDateTimeN = 0x6F,
  kMoney4 = 0x7A,
  kInt8 = 0x7F,
  kBigVarBinary = 0xA5,
  kBigVarChar = 0xA7,
  kBigBinary = 0xAD,
  kBigChar = 0xAF,
  kNVarChar = 0xE7,
  kNChar = 0xEF,
  kUdt = 0xF0,
  kXml = 0xF1,
  kTvp = 0xF3,
  kJson = 0xF4,
  kVector = 0xF5,
};

// Procedure numbers of an RPC request (2.2.6.6).
enum class ProcId : std::uint16_t {
  kCursor = 1,
  kCursorOpen = 2,
  kCursorPrepare = 3,
  kCursorExecute = 4,
  kCursorPrepExec = 5,
  kCursorUnprepare = 6,
  kCursorFetch = 7,
  kCursorOption = 8,
  kCursorClose = 9,
  kExecuteSql = 10,
  kPrepare = 11,
  kExecute = 12,
  kPrepExec = 13,
  kPrepExecRpc = 14,
  kUnprepare = 15,
};

}  // namespace mssql_cdc::tds
