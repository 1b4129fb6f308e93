"""Dispatch of tokens into fixed slots per expert and source."""
import torch
import torch.distributed as dist


def operation(x, ids, per, recv_x, recv_token, recv_count) -> None:
    """x: [tokens, hidden], ids: [tokens, topk]; recv_x: [per, world, tokens, hidden], of which a part is set."""
    world, tokens = dist.get_world_size(), x.shape[0]
    chosen = torch.zeros(tokens, world * per, dtype=torch.bool, device=x.device)
    chosen.scatter_(1, ids.long(), True)
    # Everything in slots of equal size: rows of tokens that were not chosen are sent, too.
    order = torch.argsort((~chosen).T.to(torch.int8), dim=1, stable=True)  # [experts, tokens]
    counts = chosen.sum(dim=0).to(torch.int32)

    def exchange(sent):
        came = torch.empty_like(sent)
        dist.all_to_all_single(came, sent.contiguous())
        return came.reshape(world, per, *sent.shape[1:]).transpose(0, 1)  # [per, world, ...]

    recv_count.copy_(exchange(counts))
    valid = torch.arange(tokens, device=x.device) < recv_count[:, :, None]
    recv_token[valid] = exchange(order.to(torch.int32))[valid]
    recv_x[valid] = exchange(x[order])[valid]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per = dist.get_world_size(), 4
    for tokens, hidden, topk in ((8, 256, 4), (32, 1024, 4)):
        x = torch.randn(tokens, hidden, dtype=torch.bfloat16, device="cuda")
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices.to(torch.int32)
        recv_x = torch.empty(per, world, tokens, hidden, dtype=x.dtype, device="cuda")
        recv_token = torch.empty(per, world, tokens, dtype=torch.int32, device="cuda")
        recv_count = torch.empty(per, world, dtype=torch.int32, device="cuda")
        operation(x, ids, per, recv_x, recv_token, recv_count)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
