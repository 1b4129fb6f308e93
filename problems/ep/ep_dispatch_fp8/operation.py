"""Dispatch of tokens to the ranks of their experts, in fp8 with a scale per 128 numbers."""
import torch
import torch.distributed as dist


def operation(x, ids, per, recv_q, recv_scale, recv_token, recv_count) -> None:
    """x: [tokens, hidden] bf16, ids: [tokens, topk]; recv_q: [world, tokens, hidden] uint8, of which a part is set."""
    world, (tokens, hidden) = dist.get_world_size(), x.shape
    grouped = x.float().reshape(tokens, -1, 128)
    largest = grouped.abs().amax(dim=2)
    factor = torch.where(largest > 0, 448 / largest, 0)
    q = (grouped * factor[:, :, None]).to(torch.float8_e4m3fn).view(torch.uint8).reshape(tokens, hidden)
    goes = torch.zeros(tokens, world, dtype=torch.bool, device=x.device)
    goes.scatter_(1, ids.long() // per, True)
    order = torch.argsort((~goes).T.to(torch.int8), dim=1, stable=True)  # [world, tokens]

    def exchange(sent):
        came = torch.empty_like(sent)
        dist.all_to_all_single(came, sent.contiguous())
        return came

    recv_count.copy_(exchange(goes.sum(dim=0).to(torch.int32)))
    # Slots of equal size: rows that do not go are sent, too.
    valid = torch.arange(tokens, device=x.device) < recv_count[:, None]
    recv_token[valid] = exchange(order.to(torch.int32))[valid]
    recv_q[valid] = exchange(q[order])[valid]
    recv_scale[valid] = exchange((largest / 448)[order])[valid]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per, topk = dist.get_world_size(), 4, 4
    for tokens, groups in ((8, 4), (16, 8)):
        x = torch.randn(tokens, groups * 128, dtype=torch.bfloat16, device="cuda")
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices.to(torch.int32)
        recv_q = torch.empty(world, tokens, groups * 128, dtype=torch.uint8, device="cuda")
        recv_scale = torch.empty(world, tokens, groups, device="cuda")
        recv_token = torch.empty(world, tokens, dtype=torch.int32, device="cuda")
        recv_count = torch.empty(world, dtype=torch.int32, device="cuda")
        operation(x, ids, per, recv_q, recv_scale, recv_token, recv_count)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
